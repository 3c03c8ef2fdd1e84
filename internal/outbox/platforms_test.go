package outbox_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/outbox"
	"pawgate/internal/work"
)

// TestChannelsOfWork: what is told later can be told by exactly those that there
// are.
func TestChannelsOfWork(t *testing.T) {
	if diff := cmp.Diff(outbox.Platforms(), work.Channels); diff != "" {
		t.Errorf("work.Channels (-want +got):\n%s", diff)
	}
}
