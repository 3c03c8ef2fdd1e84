package supervise_test

import (
	"testing"

	"pawgate/internal/client/llama/llamatest"
)

func TestMain(m *testing.M) { llamatest.Main(m) }
