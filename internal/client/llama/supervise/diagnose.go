package supervise

import (
	"bufio"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"runtime"
	"strings"
)

// Reason is the stable token of a failure.
type Reason string

// The reasons why a server does not run.
const (
	NotExecutable     Reason = "not_executable"
	WrongArchitecture Reason = "wrong_architecture"
	NoProgram         Reason = "no_program"
	MissingLibrary    Reason = "missing_library"
	OutOfMemory       Reason = "out_of_memory"
	PortTaken         Reason = "port_taken"
	CorruptModel      Reason = "corrupt_model"
	UnsupportedModel  Reason = "unsupported_model"
	ChatTemplate      Reason = "chat_template"
	BadOption         Reason = "bad_option"
	ExitedEarly       Reason = "exited_early"
	StartTimeout      Reason = "start_timeout"
	Crashed           Reason = "crashed"
)

// sign is a text in a server's log that tells why it ended.
type sign struct {
	text   *regexp.Regexp
	reason Reason
	advice string
}

// signs are looked for in order: what names a cause before what follows from
// it.
func signs() []sign {
	re := func(s string) *regexp.Regexp { return regexp.MustCompile(`(?i)` + s) }
	return []sign{
		{re(`couldn't bind|address already in use|failed to bind`), PortTaken, "its port was taken by another program; start it again"},
		{re(`out of memory|failed to allocate|unable to allocate|cannot allocate memory|bad_alloc|cudamalloc failed|erroroutofdevicememory`),
			OutOfMemory, "take a smaller model or quantisation, a smaller context_size, or fewer gpu_layers"},
		{re(`unknown (model )?architecture|unsupported model architecture|unknown pre-tokenizer type`), UnsupportedModel, "its server is too old for this model; update llama-server or take another model"},
		{re(`chat[_ ]template|jinja`), ChatTemplate, "the model's chat template does not work with this server; update llama-server or take another build of the model"},
		{re(`error while loading shared libraries|library not loaded`), MissingLibrary, "a library that the server needs is not installed on the host"},
		{re(`exec format error|cannot execute binary file|bad cpu type`), WrongArchitecture, "the program is for another processor or system than this host's"},
		{re(`invalid argument|unknown argument|error while handling argument|expected value for argument`), BadOption, "the server does not take one of the options; start it without, or update it"},
		{re(`invalid magic|failed to load model|error loading model|failed to read|corrupted or incomplete|not within the file bounds`),
			CorruptModel, "the model file is damaged or incomplete; download it again"},
	}
}

// diagnose finds out why a process ended before or after it was ready.
func diagnose(e exit, log []string) Failure {
	f := Failure{Log: log}
	text := strings.Join(log, "\n")
	for _, s := range signs() {
		if s.text.MatchString(text) {
			f.Reason, f.Advice = s.reason, s.advice
			return f
		}
	}
	switch {
	case e.killed():
		f.Reason, f.Advice = OutOfMemory, "it was killed, most likely because memory ran out: take a smaller model, quantisation or context_size"
	case e.known:
		f.Reason, f.Advice = ExitedEarly, fmt.Sprintf("it ended by itself with code %d; its last lines are in log", e.code)
		if len(log) == 0 {
			f.Advice = fmt.Sprintf("it ended by itself with code %d and said nothing; a program that the system cannot run whole, such as one over 4 GB on Windows, does that", e.code)
		}
	default:
		f.Reason, f.Advice = ExitedEarly, "it ended by itself; its last lines are in log"
	}
	return f
}

// cannotStart explains an error of starting a program.
func cannotStart(program string, err error) Failure {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Failure{Log: []string{}, Reason: NoProgram, Advice: "the program is not on the host (or the loader it asks for is not); the operator installs it"}
	case errors.Is(err, fs.ErrPermission):
		return Failure{Log: []string{}, Reason: NotExecutable, Advice: "the file may not be executed; the operator runs chmod +x on it (and the folder must not be mounted noexec)"}
	}
	if f, bad := inspect(program); bad {
		return f
	}
	return Failure{Log: []string{}, Reason: ExitedEarly, Advice: "the system could not start it"}
}

// inspect looks at a program before it is started, for what the system would
// only answer vaguely.
func inspect(program string) (Failure, bool) {
	head := beginning(program)
	switch {
	case head == nil: // starting it tells more
	case bytes.HasPrefix(head, []byte(elf.ELFMAG)):
		return inspectELF(head)
	case isAPE(head), bytes.HasPrefix(head, []byte("#!")), bytes.HasPrefix(head, []byte("\xcf\xfa\xed\xfe")):
	case bytes.HasPrefix(head, []byte("GGUF")):
		return Failure{Log: []string{}, Reason: NotExecutable, Advice: "the file is a model without a server; give it the ending .gguf and load it as a model"}, true
	default:
		return Failure{Log: []string{}, Reason: NotExecutable, Advice: "the file is no llamafile: it does not begin like a program; download it again"}, true
	}
	return Failure{}, false
}

// inspectELF reads the machine out of an ELF header (e_machine, at byte 18 in
// both classes).
func inspectELF(head []byte) (Failure, bool) {
	here := machine()
	if len(head) < headBytes || runtime.GOOS != "linux" || here == elf.EM_NONE {
		return Failure{}, false
	}
	order := binary.ByteOrder(binary.LittleEndian)
	if elf.Data(head[elf.EI_DATA]) == elf.ELFDATA2MSB {
		order = binary.BigEndian
	}
	there := elf.Machine(order.Uint16(head[18:]))
	if there == here {
		return Failure{}, false
	}
	return Failure{Log: []string{}, Reason: WrongArchitecture, Advice: fmt.Sprintf("the program is for %s, and this host is %s",
		strings.TrimPrefix(there.String(), "EM_"), runtime.GOARCH)}, true
}

// headBytes is as much of a program as tells what it is.
const headBytes = 20

// beginning is the first bytes of a file, nil when it cannot be read.
func beginning(path string) []byte {
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	head := make([]byte, headBytes)
	n, _ := io.ReadFull(file, head)
	return head[:n]
}

func machine() elf.Machine {
	return map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64, "386": elf.EM_386,
		"arm": elf.EM_ARM, "riscv64": elf.EM_RISCV, "ppc64le": elf.EM_PPC64, "s390x": elf.EM_S390}[runtime.GOARCH]
}

// isAPE recognises an actually portable executable: a DOS header that is a
// shell script too.
func isAPE(head []byte) bool {
	return bytes.HasPrefix(head, []byte("MZqFpD")) || bytes.HasPrefix(head, []byte("jartsr")) || bytes.HasPrefix(head, []byte("APEDBG"))
}

// timedOut explains a server that lives but never became ready. Where the
// system hands programs that begin with MZ to something else, that is the
// likely cause.
func timedOut(root fs.FS, program string, log []string) Failure {
	f := Failure{Reason: StartTimeout, Log: log,
		Advice: "it did not become ready in time: a large model on a slow disk needs longer (PAWGATE_MODEL_START_TIMEOUT), or the host is out of memory"}
	if !isAPE(beginning(program)) {
		return f
	}
	if who := grabber(root); who != "" {
		f.Advice = fmt.Sprintf("the system hands programs of this kind to %s (binfmt_misc), which cannot run it: "+
			"the operator removes that registration or registers the APE loader", who)
	}
	return f
}

// grabber names the binfmt_misc registration (binfmt_misc of the Linux
// kernel's documentation) that takes files beginning with MZ, such as Wine's
// or the one of the Windows Subsystem for Linux.
func grabber(root fs.FS) string {
	files, err := fs.Glob(root, "proc/sys/fs/binfmt_misc/*")
	if err != nil {
		return ""
	}
	for _, file := range files {
		text, err := fs.ReadFile(root, file)
		name := file[strings.LastIndexByte(file, '/')+1:]
		if err != nil || !strings.HasPrefix(string(text), "enabled") || strings.HasPrefix(strings.ToLower(name), "ape") {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if strings.TrimSpace(line) == "magic 4d5a" {
				return name
			}
		}
	}
	return ""
}

const (
	tailBytes = 16 << 10
	tailLines = 20
	lineBytes = 300
)

// tail is the end of a log, fit to be shown: without the known folders, other
// paths, and control characters.
func tail(path string, known []string) []string {
	file, err := os.Open(path)
	if err != nil {
		return []string{}
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > tailBytes {
		_, _ = file.Seek(-tailBytes, io.SeekEnd)
	}
	lines := []string{}
	scanner := bufio.NewScanner(io.LimitReader(file, tailBytes))
	for scanner.Scan() {
		text := scanner.Text()
		for _, dir := range known {
			text = strings.ReplaceAll(text, dir, "")
		}
		if line := Clean(text); line != "" {
			lines = append(lines, line)
		}
	}
	return lines[max(len(lines)-tailLines, 0):]
}

var (
	absolutePath = regexp.MustCompile(`(^|[\s'"` + "`" + `=:,;(\[<])(?:[A-Za-z]:)?[/\\]+(?:[^/\\\s'"` + "`" + `,;:()\[\]]+[/\\]+)*`)
	control      = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")
)

// Clean keeps of every path in a line the last element only, and of a long
// line the beginning.
func Clean(line string) string {
	line = strings.TrimSpace(control.ReplaceAllString(strings.ToValidUTF8(line, "?"), ""))
	line = absolutePath.ReplaceAllString(line, "$1")
	if len(line) > lineBytes {
		line = strings.ToValidUTF8(line[:lineBytes], "") + "…"
	}
	return line
}
