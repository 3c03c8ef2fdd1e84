package database_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"pawgate/local/database"
)

func TestDefaultDir(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("checks the folders of Linux")
	}
	private := "/home/a/.local/share/pawgate"
	if os.Geteuid() == 0 {
		private = "/var/lib/pawgate"
	}
	for name, tt := range map[string]struct{ xdg, home, want string }{
		"XDG":             {xdg: "/data", home: "/home/a", want: "/data/pawgate"},
		"XDG is relative": {xdg: "data", home: "/home/a", want: private},
		"home":            {home: "/home/a", want: private},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("XDG_DATA_HOME", tt.xdg)
			t.Setenv("HOME", tt.home)
			t.Chdir(t.TempDir())
			got, err := database.DefaultDir()
			if err != nil || got != tt.want {
				t.Errorf("folder is %q (%v), want %q", got, err, tt.want)
			}
		})
	}
	t.Run("no HOME", func(t *testing.T) {
		t.Setenv("XDG_DATA_HOME", "")
		t.Setenv("HOME", "")
		got, err := database.DefaultDir()
		if err != nil || !filepath.IsAbs(got) {
			t.Errorf("folder is %q (%v), want an absolute one", got, err)
		}
	})
}
