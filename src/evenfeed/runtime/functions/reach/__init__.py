"""What a user function can reach besides its arguments: Python objects and random generators."""
