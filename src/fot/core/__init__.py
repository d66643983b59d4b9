"""The method itself: pure, standard library only, with no clock, file, network or event loop."""
