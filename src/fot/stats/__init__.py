"""How sure a figure is: arrays in, plain results out."""
