package tool_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/tool"
)

func TestReporting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got []tool.Progress
		ctx := tool.WithProgress(t.Context(), func(p tool.Progress) { got = append(got, p) })
		n := 0.0
		stop := tool.Reporting(ctx, time.Second, func() tool.Progress { n++; return tool.Progress{Done: n, Total: 9} })
		time.Sleep(2500 * time.Millisecond)
		stop()
		if diff := cmp.Diff([]tool.Progress{{Done: 1, Total: 9}, {Done: 2, Total: 9}, {Done: 3, Total: 9}}, got); diff != "" {
			t.Errorf("reports (-want +got):\n%s", diff)
		}
	})
}

func TestReportingToNobody(t *testing.T) {
	t.Parallel()
	stop := tool.Reporting(context.Background(), time.Nanosecond, func() tool.Progress {
		t.Error("read for nobody")
		return tool.Progress{}
	})
	stop()
}
