package blobtest

func linearRules() []rule { return nil }
