package main

func embedded() (target, error) { return target{}, usageError("bench: no URL") }
