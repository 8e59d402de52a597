"""Runs functions on elements of many shapes."""
