"""What each replica gets at each step, on its device, ahead of time."""
