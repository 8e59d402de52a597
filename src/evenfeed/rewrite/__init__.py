"""From the plan that a user wrote to the plan that one worker runs."""
