package fakes3_test

var (
	rangeChecks, multipartChecks, listChecks, versionChecks, integrityChecks, keyChecks []check
)
