"""The cluster: its tasks, which of them this process is, how workers connect, and the hardware of this machine."""
