"""Global arrays on any mesh: what each process reads, and who holds which rows."""
