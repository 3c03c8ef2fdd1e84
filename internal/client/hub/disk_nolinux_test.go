//go:build !linux

package hub

import "testing"

func smallDisk(*testing.T) (string, bool) { return "", false }
