"""Which problems are solved: the benchmarks of the project."""
