//go:build linux || darwin

package database

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// secret is what the file "password" holds; each role's password is derived from it, so that the application's URL
// does not give the superuser's away.
type secret string

func (s secret) password(role string) string {
	mac := hmac.New(sha256.New, []byte(s))
	mac.Write([]byte(role))
	return hex.EncodeToString(mac.Sum(nil)[:20])
}

// loadSecret fills in the secret, a new one when there is no data that knows another.
func (h home) loadSecret(s *secret) error {
	if *s != "" {
		return nil
	}
	got, err := h.readSecret()
	if errors.Is(err, fs.ErrNotExist) {
		if h.hasData() {
			return fmt.Errorf("read password: %s is missing and the data beside it needs it: put it back, or move the folder away", h.path("password"))
		}
		got, err = h.makeSecret()
	}
	*s = got
	return err
}

func (h home) readSecret() (secret, error) {
	text, err := os.ReadFile(h.path("password"))
	if err != nil {
		return "", fmt.Errorf("read password: %w", err)
	}
	s := strings.TrimSpace(string(text))
	if len(s) < 20 {
		return "", fmt.Errorf("read password: %s does not hold one; put the old file back", h.path("password"))
	}
	return secret(s), nil
}

// makeSecret has the file on disk before any data knows the password.
func (h home) makeSecret() (secret, error) {
	s := secret(rand.Text())
	tmp := h.path("password.new")
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("make password: %w", err)
	}
	if err := writeFile(tmp, string(s)+"\n"); err != nil {
		return "", fmt.Errorf("make password: %w", err)
	}
	if err := os.Rename(tmp, h.path("password")); err != nil {
		return "", fmt.Errorf("make password: %w", err)
	}
	return s, syncDir(h.dir)
}

// writeFile makes a new file that only its owner can read, on disk when it returns.
func writeFile(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Sync(), f.Close())
}
