package config

import (
	"fmt"
	"math"
	"os"
	"time"

	"edge/envelope"
)

// Bounds that belong to a field alone.
const (
	maxMaxLine  = 32 << 20 // an event must fit the spool's record (64 MiB) with what is added to it
	maxMemory   = 1 << 30  // what an int and a 32-bit machine hold
	maxInOut    = 8 << 20  // a frame's default
	maxFuel     = 1 << 40  // some minutes of work: the wall clock ends it before
	maxModTime  = time.Minute
	maxDrain    = time.Hour
	maxPause    = time.Hour
	leastFlight = 64 << 10               // bytes: some messages of the usual size
	mostFlight  = 16 << 20               // a lane holds eight blocks of 2 MiB
	leastTTL    = time.Second            // the server's resolution
	leastWindow = 100 * time.Millisecond // the server refuses less
	mostWindow  = 366 * 24 * time.Hour
)

// file reads the whole configuration over its defaults.
func (w *walker) file(n *node, c *Config) {
	*c = Config{
		File:       c.File,
		Agent:      Agent{DrainTime: DefaultDrainTime},
		Spool:      Spool{MaxBytes: DefaultSpoolBytes},
		Quarantine: Quarantine{MaxBytes: DefaultQuarantineBytes},
	}
	w.mapping(n, "",
		field{"agent", true, func(n *node, path string) {
			w.mapping(n, path,
				field{"id", true, w.checked(&c.Agent.ID, badAgentName)},
				field{"data_dir", true, w.filePath(&c.Agent.DataDir)},
				field{"drain_time", false, w.duration(&c.Agent.DrainTime, time.Millisecond, maxDrain)},
			)
		}},
		field{"datasets", true, func(n *node, path string) {
			w.list(n, path, func(_ int, n *node, path string) {
				c.Datasets = append(c.Datasets, Dataset{})
				w.dataset(n, path, &c.Datasets[len(c.Datasets)-1])
			})
		}},
		field{"inputs", true, func(n *node, path string) {
			w.list(n, path, func(_ int, n *node, path string) {
				c.Inputs = append(c.Inputs, Input{})
				w.input(n, path, &c.Inputs[len(c.Inputs)-1])
			})
		}},
		field{"sinks", true, func(n *node, path string) {
			w.list(n, path, func(_ int, n *node, path string) {
				c.Sinks = append(c.Sinks, Sink{})
				w.sink(n, path, &c.Sinks[len(c.Sinks)-1])
			})
		}},
		field{"spool", false, func(n *node, path string) {
			w.mapping(n, path, field{"max_bytes", false, w.size(&c.Spool.MaxBytes, MinSpoolBytes, math.MaxInt64)})
		}},
		field{"quarantine", false, func(n *node, path string) {
			w.mapping(n, path, field{"max_bytes", false, w.size(&c.Quarantine.MaxBytes, 64<<10, math.MaxInt64)})
		}},
	)
}

// filePath reads a path and joins a relative one with the configuration's folder.
func (w *walker) filePath(to *string) read {
	return func(n *node, path string) {
		w.str(to)(n, path)
		*to = w.around.path(*to)
	}
}

// existing reads the path of a regular file that must be there: whoever opens a pipe waits for its writer. instead is
// what else there is to do, for people.
func (w *walker) existing(to *string, instead string) read {
	return func(n *node, path string) {
		w.filePath(to)(n, path)
		if *to == "" {
			return
		}
		switch info, err := os.Stat(*to); {
		case err != nil && n.foreign:
			w.fail(n, path, "%sthe file that the reference names cannot be used", label(path))
		case err != nil:
			w.fail(n, path, "%s%v", label(path), err)
		case info.IsDir():
			w.fail(n, path, "%s%s is a folder: name a file", label(path), quote(n))
		case !info.Mode().IsRegular():
			w.fail(n, path, "%s%s is not a regular file: name one%s", label(path), quote(n), instead)
		}
	}
}

func (w *walker) dataset(n *node, path string, d *Dataset) {
	w.mapping(n, path,
		field{"name", true, w.checked(&d.Name, badName)},
		field{"identity", false, func(n *node, path string) {
			w.list(n, path, func(i int, n *node, path string) {
				level := ""
				w.checked(&level, badLevel)(n, path)
				for _, l := range d.Identity {
					if l == level {
						w.fail(n, path, "%slevel %q is given twice: keep one", label(path), level)
						return
					}
				}
				if level != "" {
					d.Identity = append(d.Identity, level)
				}
			})
		}},
	)
}

func (w *walker) input(n *node, path string, in *Input) {
	in.Format, in.MaxLine = FormatJSON, DefaultMaxLine
	w.mapping(n, path,
		field{"id", true, w.checked(&in.ID, badName)},
		field{"kind", true, w.enum(&in.Kind, KindFile, KindStdin)},
		field{"path", false, w.existing(&in.Path, ", or read a pipe as kind: stdin")},
		field{"dataset", true, w.str(&in.Dataset)},
		field{"format", false, w.enum(&in.Format, FormatJSON, FormatRaw)},
		field{"max_line", false, w.intSize(&in.MaxLine, 64, maxMaxLine)},
		field{"map", false, func(n *node, path string) { w.inputMap(n, path, &in.Map) }},
	)
}

func (w *walker) inputMap(n *node, path string, m *Map) {
	m.TimeFormat = TimeRFC3339
	w.mapping(n, path,
		field{"id", false, w.pointer(&m.ID)},
		field{"time", false, w.pointer(&m.Time)},
		field{"time_format", false, w.enum(&m.TimeFormat, TimeRFC3339, TimeUnix, TimeUnixMilli, TimeUnixMicro, TimeUnixNano)},
		field{"quality", false, w.pointer(&m.Quality)},
		field{"identity", false, func(n *node, path string) {
			if n.kind != mapping {
				w.fail(n, path, "%sexpected a mapping from levels to pointers, got %s", label(path), n.what())
				return
			}
			m.Identity = make(map[string]string, len(n.entries))
			for _, e := range n.entries {
				sub := join(path, e.key)
				w.at[sub] = e.pos
				if _, ok := m.Identity[e.key]; ok {
					w.add(e.pos, sub, "key %q is given twice: keep one", e.key)
					continue
				}
				p := ""
				if !e.value.lost {
					w.pointer(&p)(e.value, sub)
				}
				m.Identity[e.key] = p
			}
		}},
	)
}

// pointer reads a JSON pointer.
func (w *walker) pointer(to *string) read {
	return func(n *node, path string) {
		v, ok := w.text(n, path)
		if !ok {
			return
		}
		if _, err := envelope.NewExtractor([]string{v}); err != nil {
			if n.foreign {
				w.fail(n, path, "%s%s is no JSON pointer: write one like /header/stamp", label(path), quote(n))
				return
			}
			w.fail(n, path, "%s%v: write one like /header/stamp", label(path), err)
			return
		}
		*to = v
	}
}

func (w *walker) sink(n *node, path string, s *Sink) {
	s.Retry = Retry{MinBackoff: DefaultMinBackoff, MaxBackoff: DefaultMaxBackoff}
	w.mapping(n, path,
		field{"id", true, w.checked(&s.ID, badName)},
		field{"kind", true, w.enum(&s.Kind, KindNATS)},
		field{"transform", false, func(n *node, path string) {
			s.Transform = new(Transform)
			w.transform(n, path, s.Transform)
		}},
		field{"config", true, func(n *node, path string) { w.nats(n, path, &s.NATS) }},
		field{"retry", false, func(n *node, path string) {
			w.mapping(n, path,
				field{"min_backoff", false, w.duration(&s.Retry.MinBackoff, time.Millisecond, maxPause)},
				field{"max_backoff", false, w.duration(&s.Retry.MaxBackoff, time.Millisecond, maxPause)},
			)
		}},
	)
}

func (w *walker) transform(n *node, path string, t *Transform) {
	w.mapping(n, path,
		field{"module", true, w.existing(&t.Module, "")},
		field{"sha256", false, w.checked(&t.SHA256, badDigest)},
		field{"config", false, func(n *node, path string) {
			if n.kind != mapping {
				w.fail(n, path, "%sexpected a mapping for the module, got %s", label(path), n.what())
				return
			}
			t.Config = w.appendJSON(nil, n, path)
		}},
		field{"limits", false, func(n *node, path string) {
			w.mapping(n, path,
				field{"memory", false, w.intSize(&t.Limits.Memory, 64<<10, maxMemory)},
				field{"output", false, w.intSize(&t.Limits.Output, 1, maxInOut)},
				field{"input", false, w.intSize(&t.Limits.Input, 1, maxInOut)},
				field{"time", false, w.duration(&t.Limits.Time, time.Millisecond, maxModTime)},
				field{"fuel", false, w.integer(&t.Limits.Fuel, 1, maxFuel)},
			)
		}},
	)
}

func (w *walker) nats(n *node, path string, c *NATS) {
	*c = NATS{
		DuplicateWindow: DefaultDuplicateWindow, RequestTimeout: DefaultRequestTimeout, Payload: PayloadJSON,
		MaxInFlight: DefaultMaxInFlight, MaxInFlightSize: DefaultMaxInFlightSize,
		Binding: BindingTemplate, PublishMode: ModeSingle, OnDenied: DeniedHalt,
	}
	inFlight := int64(c.MaxInFlight)
	w.mapping(n, path,
		field{"url", true, w.checked(&c.URL, badURL)},
		field{"subject", false, w.str(&c.Subject)},
		field{"stream", true, w.checked(&c.Stream, badStream)},
		field{"create_stream", false, w.boolean(&c.CreateStream)},
		field{"duplicate_window", false, w.duration(&c.DuplicateWindow, leastWindow, mostWindow)},
		field{"token", false, w.secretOrFile(&c.Token, &c.TokenFile)},
		field{"user", false, w.str(&c.User)},
		field{"password", false, w.secretOrFile(&c.Password, &c.PasswordFile)},
		field{"creds_file", false, w.existing(&c.CredsFile, "")},
		field{"nkey_file", false, w.existing(&c.NKeyFile, "")},
		field{"tls", false, func(n *node, path string) {
			w.mapping(n, path,
				field{"ca_file", false, w.existing(&c.TLS.CAFile, "")},
				field{"client_cert", false, w.existing(&c.TLS.ClientCert, "")},
				field{"client_key", false, w.existing(&c.TLS.ClientKey, "")},
				field{"first", false, w.boolean(&c.TLS.First)},
			)
		}},
		field{"discovered_servers", false, w.boolean(&c.Discovered)},
		field{"binding", false, w.enum(&c.Binding, BindingTemplate, BindingStrict)},
		field{"publish_mode", false, w.enum(&c.PublishMode, ModeSingle, ModeAuto, ModeAtomic, ModeFast)},
		field{"on_denied", false, w.enum(&c.OnDenied, DeniedHalt, DeniedQuarantine)},
		field{"message_ttl", false, w.wholeSeconds(&c.MessageTTL, leastTTL, mostWindow)},
		field{"payload", false, w.enum(&c.Payload, PayloadJSON)},
		field{"request_timeout", false, w.duration(&c.RequestTimeout, time.Millisecond, MaxRequestTimeout)},
		field{"max_in_flight", false, w.integer(&inFlight, 1, MaxInFlight)},
		field{"max_in_flight_bytes", false, w.intSize(&c.MaxInFlightSize, leastFlight, mostFlight)},
		field{"datasets", false, w.texts(&c.Datasets)},
		field{"allow_subjects", false, w.texts(&c.AllowSubjects)},
	)
	c.MaxInFlight = int(inFlight)
}

// texts reads a list of texts, at least one.
func (w *walker) texts(to *[]string) read {
	return func(n *node, path string) {
		w.list(n, path, func(i int, n *node, path string) {
			v := ""
			w.str(&v)(n, path)
			*to = append(*to, v)
		})
		if n.kind == sequence && len(n.items) == 0 {
			w.fail(n, path, "%san empty list: name at least one, or remove the key", label(path))
		}
	}
}

func index(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }
