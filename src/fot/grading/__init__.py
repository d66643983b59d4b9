"""What is correct: graders, the sandbox that code runs in, and which answers are one vote."""
