// Package bench measures what the README states: ratios within one run, side
// by side, never a time alone. It has no code besides its tests, which run
// with "make bench".
package bench
