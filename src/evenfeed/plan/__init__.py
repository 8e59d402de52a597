"""Plans: frozen nodes that describe a dataset. They know its element spec and size, and read nothing."""
