// Package checks holds the rules of the repository as tests: which package may
// import which, what belongs to a category, what a tool must have. A rule that
// fails says why it is a rule. The package has no code besides.
package checks
