"""Distributed input: splits batches over replicas and prefetches them to the devices."""
