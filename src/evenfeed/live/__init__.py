"""Shows what measured iterators do while a program runs."""
