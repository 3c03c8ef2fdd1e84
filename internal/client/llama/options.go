package llama

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"pawgate/internal/fault"
)

// Options are how a model is loaded. Zero leaves it to the server.
type Options struct {
	ContextSize int
	GPULayers   *int
	Args        []string // further flags, of those that Flags lists
}

// defaultContext is the context of a model whose load does not say, in tokens.
const defaultContext = 4096

// flags are the arguments of the options; -c is always given, so that memory
// can be planned.
func (o Options) flags(context int) ([]string, error) {
	args := []string{"-c", strconv.Itoa(context)}
	if o.GPULayers != nil {
		args = append(args, "-ngl", strconv.Itoa(*o.GPULayers))
	}
	further, err := checkFlags(o.Args)
	return append(args, further...), err
}

// value is what a flag takes.
type value struct {
	words   []string // one of these
	pattern *regexp.Regexp
}

// switches are flags without a value.
var switches = []string{"--cont-batching", "--embeddings", "--jinja", "--mlock", "--no-jinja", "--no-mmap", "--no-warmup", "--swa-full"}

// valued are the flags that take a value. None of them reads or writes a file,
// opens an address, or touches the key: those belong to the host.
func valued() map[string]value {
	number := value{pattern: regexp.MustCompile(`^-?\d{1,7}(\.\d{1,7})?$`)}
	cache := value{words: []string{"f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1"}}
	return map[string]value{
		"--batch-size": number, "--ubatch-size": number, "--threads": number, "--threads-batch": number, "--parallel": number, "--seed": number,
		"--temp": number, "--top-k": number, "--top-p": number, "--min-p": number, "--repeat-penalty": number,
		"--rope-freq-base": number, "--rope-freq-scale": number, "--main-gpu": number, "--n-cpu-moe": number, "--reasoning-budget": number,
		"--cache-type-k": cache, "--cache-type-v": cache,
		"--flash-attn":       {words: []string{"on", "off", "auto"}},
		"--pooling":          {words: []string{"none", "mean", "cls", "last", "rank"}},
		"--rope-scaling":     {words: []string{"none", "linear", "yarn"}},
		"--split-mode":       {words: []string{"none", "layer", "row"}},
		"--reasoning-format": {words: []string{"none", "auto", "deepseek", "deepseek-legacy"}},
		"--tensor-split":     {pattern: regexp.MustCompile(`^\d{1,4}(\.\d+)?(,\d{1,4}(\.\d+)?){0,15}$`)},
		// Built-in ones, by name: of any other word the server makes a template.
		"--chat-template": {words: []string{"chatml", "chatglm4", "command-r", "deepseek", "deepseek2", "deepseek3", "exaone4", "falcon3", "gemma",
			"gpt-oss", "granite", "kimi-k2", "llama2", "llama3", "llama4", "minicpm", "mistral-v1", "mistral-v3", "mistral-v7", "openchat",
			"phi3", "phi4", "vicuna", "zephyr"}},
	}
}

func (v value) takes(text string) bool {
	if v.pattern != nil {
		return v.pattern.MatchString(text)
	}
	return slices.Contains(v.words, text)
}

// checkFlags refuses every flag but the listed ones, and every value that is
// not of the flag's kind. It takes "--flag value" and "--flag=value".
func checkFlags(given []string) ([]string, error) {
	known := valued()
	var args []string
	for i := 0; i < len(given); i++ {
		flag, text, joined := strings.Cut(given[i], "=")
		if slices.Contains(switches, given[i]) {
			args = append(args, given[i])
			continue
		}
		v, ok := known[flag]
		if !ok {
			return nil, fault.Invalid("args", "args must not hold %q; the flags that may be given are %s", shorten(given[i]), Flags())
		}
		if !joined {
			if i++; i == len(given) {
				return nil, fault.Invalid("args", "%s needs a value after it", flag)
			}
			text = given[i]
		}
		if !v.takes(text) {
			return nil, fault.Invalid("args", "%s does not take %q%s", flag, shorten(text), v.hint())
		}
		args = append(args, flag, text)
	}
	return args, nil
}

func (v value) hint() string {
	if len(v.words) > 0 {
		return "; it takes " + strings.Join(v.words, ", ")
	}
	return ""
}

// Flags are the flags that Options.Args may hold.
func Flags() string {
	return strings.Join(slices.Sorted(slices.Values(slices.AppendSeq(slices.Clone(switches), maps.Keys(valued())))), " ")
}

func shorten(text string) string {
	if len(text) > 60 {
		return strings.ToValidUTF8(text[:60], "") + "…"
	}
	return text
}

// shown are the options for people.
func (o Options) shown(context int) []string {
	list := []string{fmt.Sprintf("context_size=%d", context)}
	if o.GPULayers != nil {
		list = append(list, fmt.Sprintf("gpu_layers=%d", *o.GPULayers))
	}
	return append(list, o.Args...)
}
