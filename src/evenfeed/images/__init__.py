"""Images: from files to arrays and back, and what is done with them on the way to a model."""
