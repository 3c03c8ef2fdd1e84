// Package settings reads a program's settings from its environment, in one
// way for every host: envconfig for names and types, and for every value the
// same references to where a secret really lies.
//
// A value may be env://NAME, file://PATH, secretsmanager://ID#KEY or
// ssm://NAME. References are resolved once, at start; a value that cannot be
// had is a start error that names the setting and never quotes a value. A
// rotated secret is therefore seen by the next start of an instance.
package settings

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/kelseyhightower/envconfig"
)

// Load fills the struct that cfg points to and resolves references in its
// string fields, those of nested structs too. A map with the tag prefix takes
// every variable that begins with it, keyed by the rest in lower case.
func Load(ctx context.Context, cfg any) error {
	if err := envconfig.Process("", cfg); err != nil {
		if wrong := new(envconfig.ParseError); errors.As(err, &wrong) {
			return fmt.Errorf("%s must be %s", wrong.KeyName, wanted(wrong.TypeName))
		}
		return fmt.Errorf("read settings: %w", err)
	}
	return resolveFields(ctx, reflect.ValueOf(cfg).Elem(), newResolver(os.Getenv))
}

// wanted is a type in words; the value that is none may be a secret in a wrong
// place and is not quoted.
func wanted(goType string) string {
	switch goType {
	case "time.Duration":
		return "a length of time such as 30s or 5m"
	case "bool":
		return "true or false"
	case "[]int":
		return "whole numbers separated by commas"
	case "slog.Level":
		return "DEBUG, INFO, WARN or ERROR"
	}
	if strings.HasPrefix(goType, "float") {
		return "a number"
	}
	return "a whole number"
}

// prefixed are the variables that begin with a prefix.
func prefixed(prefix string) map[string]string {
	found := map[string]string{}
	for _, variable := range os.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		if rest, ok := strings.CutPrefix(name, prefix); ok && value != "" {
			found[strings.ToLower(rest)] = value
		}
	}
	return found
}

func resolveFields(ctx context.Context, v reflect.Value, r resolver) error {
	for i := range v.NumField() {
		field, value := v.Type().Field(i), v.Field(i)
		switch value.Kind() {
		case reflect.Struct:
			if err := resolveFields(ctx, value, r); err != nil {
				return err
			}
		case reflect.Map:
			if prefix := field.Tag.Get("prefix"); prefix != "" {
				value.Set(reflect.ValueOf(prefixed(prefix)))
			}
		case reflect.String:
			if !value.CanSet() {
				continue
			}
			resolved, err := r.resolve(ctx, value.String())
			if err != nil {
				return fmt.Errorf("resolve %s: %w", field.Tag.Get("envconfig"), err)
			}
			value.SetString(resolved)
		}
	}
	return nil
}

// Resolve gives the value behind one reference, at once, for what is set in
// the database and not at start. A value that is no reference is given back.
// The error never quotes a value.
func Resolve(ctx context.Context, value string) (string, error) {
	return newResolver(os.Getenv).resolve(ctx, value)
}

// IsReference reports whether a value says where a secret lies, instead of
// being one.
func IsReference(value string) bool {
	scheme, rest, ok := strings.Cut(value, "://")
	return ok && rest != "" && slices.Contains([]string{"env", "file", "secretsmanager", "ssm"}, scheme)
}

// Setting is one line of a help text.
type Setting struct {
	Name    string `json:"name"`
	Default string `json:"default,omitempty"`
	About   string `json:"about"`
}

// List describes the settings of structs by their tags: envconfig (the name),
// default, and desc.
func List(structs ...any) []Setting {
	var list []Setting
	seen := map[string]bool{}
	for _, s := range structs {
		list = appendFields(list, seen, reflect.TypeOf(s))
	}
	return list
}

func appendFields(list []Setting, seen map[string]bool, t reflect.Type) []Setting {
	for f := range fields(t) {
		name := f.Tag.Get("envconfig")
		if prefix := f.Tag.Get("prefix"); prefix != "" {
			name = prefix + "…"
		}
		switch {
		case name == "" && f.Type.Kind() == reflect.Struct:
			list = appendFields(list, seen, f.Type)
		case name != "" && !seen[name]:
			seen[name] = true
			list = append(list, Setting{Name: name, Default: f.Tag.Get("default"), About: f.Tag.Get("desc")})
		}
	}
	return list
}

func fields(t reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			if !yield(t.Field(i)) {
				return
			}
		}
	}
}

// resolver finds the value behind a reference.
type resolver struct {
	getenv func(string) string
	aws    awsSecrets
}

func newResolver(getenv func(string) string) resolver {
	return resolver{getenv: getenv, aws: awsSecrets{getenv: getenv}}
}

func (r resolver) resolve(ctx context.Context, value string) (string, error) {
	scheme, rest, ok := strings.Cut(value, "://")
	if !ok {
		return value, nil
	}
	switch scheme {
	case "env":
		if v := r.getenv(rest); v != "" {
			return v, nil
		}
		return "", fmt.Errorf("the environment has no %s", rest)
	case "file":
		content, err := os.ReadFile(rest)
		if err != nil {
			return "", fmt.Errorf("the file of the reference cannot be read")
		}
		return strings.TrimSpace(string(content)), nil
	case "secretsmanager":
		id, key, _ := strings.Cut(rest, "#")
		return r.aws.secretsManager(ctx, id, key)
	case "ssm":
		return r.aws.parameter(ctx, rest)
	case "http", "https", "postgres", "postgresql":
		return value, nil // an ordinary URL
	}
	if !isScheme.MatchString(scheme) {
		return value, nil
	}
	return "", errors.New("it looks like a reference, but there are only env://NAME, file://PATH, secretsmanager://ID#KEY and ssm://NAME")
}

// isScheme is what may stand before "://" (RFC 3986, section 3.1). A reference
// of another product, or a misspelt one, must not go out as the secret itself.
var isScheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*$`)
