"""Rewrites that turn the user's plan into the plan that one worker runs."""
