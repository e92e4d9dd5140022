"""What ran: mechanisms as users describe them, their worst-case pairs, and the losses of one step."""
