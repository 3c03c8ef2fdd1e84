package hardware

import "fmt"

// usableShare is how much of the free memory a model may take: the rest is
// for the server itself, its buffers and everybody else on the machine.
const usableShare = 0.7

// Budget is how large a model, its context included, may be on this host.
type Budget struct {
	Bytes int64  `json:"bytes"`
	Where string `json:"where"` // gpu, unified or ram
	How   string `json:"how"`   // the arithmetic, for people
}

// Budget works out the room for a model; ok is false when no size is known.
// Accelerators count together, because llama.cpp splits a model over them;
// memory that they share with the processors counts once.
func (i Info) Budget() (b Budget, ok bool) {
	var free int64
	known := 0
	for _, g := range i.GPUs {
		if g.Free != nil && !g.Unified {
			free += *g.Free
			known++
		}
	}
	if known > 0 {
		return budget("gpu", free, fmt.Sprintf("free memory of %d GPU(s)", known)), true
	}
	ram := i.Memory.Usable()
	if ram == nil {
		return Budget{}, false
	}
	source := "available memory"
	if i.Memory.LimitFree != nil && *ram == *i.Memory.LimitFree {
		source = "what the " + i.Memory.LimitFrom + " limit leaves"
	}
	if i.Memory.Unified {
		return budget("unified", *ram, source+", shared with the GPU"), true
	}
	return budget("ram", *ram, source), true
}

func budget(where string, free int64, source string) Budget {
	bytes := int64(float64(free) * usableShare)
	return Budget{Bytes: bytes, Where: where,
		How: fmt.Sprintf("%.0f %% of %s (%s) = %s", usableShare*100, Size(free), source, Size(bytes))}
}

// Size is a number of bytes as people write it, in units of 1024.
func Size(bytes int64) string {
	const unit = 1 << 10
	if bytes < unit {
		return fmt.Sprintf("%d B", bytes)
	}
	value, prefix := float64(bytes)/unit, "KMGTPE"
	for value >= unit {
		value, prefix = value/unit, prefix[1:]
	}
	return fmt.Sprintf("%.1f %ciB", value, prefix[0])
}

// Backend is what would compute: cuda, rocm, metal, or cpu where no
// accelerator that llama.cpp prefers is found.
func (i Info) Backend() string {
	for _, g := range i.GPUs {
		switch g.Vendor {
		case "nvidia":
			return "cuda"
		case "amd":
			return "rocm"
		case "apple":
			return "metal"
		}
	}
	return "cpu"
}
