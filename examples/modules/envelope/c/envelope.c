// envelope.c: an edge_v1 module in plain C, without a library. It turns each event into this message:
//
//   subject   what the sink's template made of the event; empty leaves it to the sink
//   header    Edge-Kind: the record's own "kind", if that is a short plain string
//   payload   {lineage and identity, constants of the configuration, the record's members}
//
// Three things are done to the record's members on the way: "metric" is renamed to "data"; a name that has already
// been taken is left out, so that no record can overwrite its lineage; and a record that is not exactly one valid
// JSON object is rejected with a reason, which puts this one event into quarantine.
//
// To make it your own: change write() at the end. What stands before it reads JSON and manages memory.
// README.md, one folder up, draws the frame. ./build.sh builds this file.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef u64 word __attribute__((aligned(1), may_alias)); // eight bytes at any address

#define EXPORT(name) __attribute__((export_name(name)))

enum {
	MAGIC = 0x31474445,   // "EDG1"
	MAX_FRAME = 16 << 20, // more input than this is refused
	MAX_CONFIG = 4096,    // bytes of configuration
	MAX_CONSTANTS = 64,   // members of the configuration
	MAX_NAMES = 512,      // different names in one message
	MAX_KIND = 64,        // longest value of the header
	MAX_DEPTH = 128,      // containers inside one another
};

// What the host writes. Offsets count from the frame's first byte.
struct frame { u32 magic, count, progress, flags; };
struct event {
	long long ingest_time, event_time; // ns since 1970 UTC; event_time is the smallest number when it is unknown
	u8 id[16];
	u32 data, data_len;       // the event's body
	u32 meta, meta_len;       // "Name: value\r\n" lines; not used here
	u32 prefix, prefix_len;   // JSON members without braces: lineage and identity
	u32 subject, subject_len; // the sink's template, rendered
};

// What the host reads: this header, then subject, headers and payload.
struct record { u32 index; u8 kind, zero; u16 subject_len; u32 headers_len, payload_len; } __attribute__((packed));

_Static_assert(sizeof(struct frame) == 16 && sizeof(struct event) == 64 && sizeof(struct record) == 16, "edge_v1");

// ---- bytes and memory ------------------------------------------------------------------------------------------

// Memory is: statics, stack | frame buffer | records. Only the buffer's end and the end of memory ever move, up.
extern u8 __heap_base;
static u8 *records; // where the frame buffer ends and the records begin

static u8 *align8(u8 *p) { return (u8 *)(((u32)p + 7) & ~7u); }

// reach grows memory until it holds the n bytes at p: a mebibyte more than needed if it may, else what is needed.
static int reach(u8 *p, u64 n) {
	u64 have = (u64)__builtin_wasm_memory_size(0) << 16, want = (u32)p + n;
	if (want <= have) return 1;
	if (want > 0xffff0000u) return 0;
	u32 pages = (u32)((want - have + 65535) >> 16);
	return __builtin_wasm_memory_grow(0, pages + 16) != (unsigned long)-1 || __builtin_wasm_memory_grow(0, pages) != (unsigned long)-1;
}

// copy returns the end of what it wrote. Short pieces are moved here: a bulk instruction leaves compiled code.
static u8 *copy(u8 *to, const u8 *from, u32 n) {
	if (n > 256) {
		__builtin_memcpy(to, from, n);
		return to + n;
	}
	for (; n >= 8; n -= 8, to += 8, from += 8) *(word *)to = *(const word *)from;
	while (n-- > 0) *to++ = *from++;
	return to;
}

static u8 *text(u8 *to, const char *s) {
	while (*s) *to++ = (u8)*s++;
	return to;
}

static u8 *decimal(u8 *to, u32 v) {
	if (v >= 10) to = decimal(to, v / 10);
	*to++ = (u8)('0' + v % 10);
	return to;
}

// ---- a strict reader of JSON (RFC 8259, valid UTF-8, whole surrogate pairs) -------------------------------------

// Each function takes a position and the end of the text, and returns the position behind what it read, or 0 after
// bad() has noted what is wrong where.
static const char *why;
static const u8 *where;

static const u8 *bad(const u8 *p, const char *what) { return why = what, where = p, (const u8 *)0; }

static const u8 *space(const u8 *p, const u8 *end) {
	while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) p++;
	return p;
}

static int hex4(const u8 *p, const u8 *end) { // -1 if these are not four hex digits
	if (end - p < 4) return -1;
	int v = 0;
	for (int i = 0; i < 4; i++) {
		u8 c = p[i], l = c | 0x20;
		if (c >= '0' && c <= '9') v = v << 4 | (c - '0');
		else if (l >= 'a' && l <= 'f') v = v << 4 | (l - 'a' + 10);
		else return -1;
	}
	return v;
}

// escape reads the escape at p, with both halves of a pair, and tells which character it is.
static const u8 *escape(const u8 *p, const u8 *end, u32 *character) {
	static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
	if (end - p < 2) return bad(end, "the text ends too early");
	for (int i = 0; names[i]; i++)
		if (p[1] == names[i]) return *character = (u8)values[i], p + 2;
	int high = p[1] == 'u' ? hex4(p + 2, end) : -1;
	if (high < 0) return bad(p, "malformed escape");
	*character = (u32)high;
	if ((high & 0xf800) != 0xd800) return p + 6;
	int low = high < 0xdc00 && end - p >= 8 && p[6] == '\\' && p[7] == 'u' ? hex4(p + 8, end) : -1;
	if ((low & ~0x3ff) != 0xdc00) return bad(p, "half of a surrogate pair");
	*character = 0x10000 + ((u32)(high & 0x3ff) << 10 | (u32)(low & 0x3ff));
	return p + 12;
}

// wide reads one character of two to four bytes.
static const u8 *wide(const u8 *p, const u8 *end) {
	u8 c = *p, low = 0x80, high = 0xbf;
	int n = c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;
	if (c == 0xe0) low = 0xa0;
	if (c == 0xed) high = 0x9f;
	if (c == 0xf0) low = 0x90;
	if (c == 0xf4) high = 0x8f;
	if (n == 0 || end - p < n || p[1] < low || p[1] > high) return bad(p, "broken UTF-8");
	for (int i = 2; i < n; i++)
		if (p[i] < 0x80 || p[i] > 0xbf) return bad(p, "broken UTF-8");
	return p + n;
}

// string reads from behind the opening quote to behind the closing one.
static const u8 *string(const u8 *p, const u8 *end) {
	const u64 ones = 0x0101010101010101, tops = ones << 7;
	for (;;) {
		// Eight bytes at a time, until one of them is a quote, a backslash, a control character or not ASCII. A borrow
		// can set a wrong bit only above a right one, so the lowest is exact.
		while (end - p >= 8) {
			u64 w = *(const word *)p;
			u64 hit = (((w ^ '"' * ones) - ones) | ((w ^ '\\' * ones) - ones) | (w - ' ' * ones) | w) & tops;
			if (hit) {
				p += __builtin_ctzll(hit) >> 3;
				break;
			}
			p += 8;
		}
		u32 ignored;
		if (p == end) return bad(p, "the text ends too early");
		if (*p == '"') return p + 1;
		if (*p < ' ') return bad(p, "control character in a string");
		if (*p == '\\') p = escape(p, end, &ignored);
		else if (*p >= 0x80) p = wide(p, end);
		else p++;
		if (!p) return 0;
	}
}

static const u8 *digits(const u8 *p, const u8 *end) { // at least one
	const u8 *start = p;
	while (p < end && *p >= '0' && *p <= '9') p++;
	return p > start ? p : bad(p, "a digit was expected");
}

static const u8 *number(const u8 *p, const u8 *end) {
	if (*p == '-') p++;
	if (p < end && *p == '0') p++;
	else if (!(p = digits(p, end))) return 0;
	if (p < end && *p == '.' && !(p = digits(p + 1, end))) return 0;
	if (p < end && (*p | 0x20) == 'e') {
		p++;
		if (p < end && (*p == '+' || *p == '-')) p++;
		return digits(p, end);
	}
	return p;
}

static const u8 *literal(const u8 *p, const u8 *end, const char *s) {
	const u8 *start = p;
	for (; *s; s++, p++)
		if (p == end || *p != *s) return bad(start, "a value was expected");
	return p;
}

static const u8 *container(const u8 *p, const u8 *end, int depth);

// value reads any value; depth is the number of containers that are open around it.
static const u8 *value(const u8 *p, const u8 *end, int depth) {
	if (p == end) return bad(p, "the text ends too early");
	switch (*p) {
	case '"': return string(p + 1, end);
	case '{': case '[': return container(p, end, depth);
	case 't': return literal(p, end, "true");
	case 'f': return literal(p, end, "false");
	case 'n': return literal(p, end, "null");
	case '-': case '0': case '1': case '2': case '3': case '4': case '5': case '6': case '7': case '8': case '9':
		return number(p, end);
	}
	return bad(p, "a value was expected");
}

static const u8 *colon(const u8 *p, const u8 *end) {
	p = space(p, end);
	return p < end && *p == ':' ? space(p + 1, end) : bad(p, "a colon was expected");
}

static const u8 *container(const u8 *p, const u8 *end, int depth) {
	u8 open = *p, close = open + 2; // { } and [ ] are two apart
	if (depth == MAX_DEPTH) return bad(p, "too many containers inside one another");
	p = space(p + 1, end);
	if (p < end && *p == close) return p + 1;
	for (;; p = space(p + 1, end)) {
		if (open == '{') {
			if (p == end || *p != '"') return bad(p, "a name in quotes was expected");
			if (!(p = string(p + 1, end)) || !(p = colon(p, end))) return 0;
		}
		if (!(p = value(p, end, depth + 1))) return 0;
		p = space(p, end);
		if (p < end && *p == close) return p + 1;
		if (p == end || *p != ',') return bad(p, "a comma or the closing bracket was expected");
	}
}

// ---- members and names -----------------------------------------------------------------------------------------

struct member {
	const u8 *quoted, *value; // "name" as it is written, and its value
	u32 quoted_len, value_len;
	const u8 *name; // without quotes and escapes
	u32 name_len, hash;
};

static u8 plain[4096]; // names that had escapes, without them
static u32 plain_len;

static u32 hash(const u8 *p, u32 n) { // FNV-1a
	u32 h = 2166136261u;
	while (n--) h = (h ^ *p++) * 16777619u;
	return h;
}

// unescape gives m its name when there are escapes in it. The string has been read, so it is well formed.
static const u8 *unescape(const u8 *p, const u8 *end, struct member *m) {
	u8 *start = plain + plain_len, *to = start;
	while (p < end) {
		if (plain + sizeof plain - to < 4) return bad(p, "too many names with escapes");
		u32 c = *p;
		if (c != '\\') {
			*to++ = *p++;
			continue;
		}
		p = escape(p, end, &c);
		if (c < 0x80) *to++ = (u8)c;
		else {
			if (c < 0x800) *to++ = (u8)(0xc0 | c >> 6);
			else {
				if (c < 0x10000) *to++ = (u8)(0xe0 | c >> 12);
				else *to++ = (u8)(0xf0 | c >> 18), *to++ = (u8)(0x80 | (c >> 12 & 0x3f));
				*to++ = (u8)(0x80 | (c >> 6 & 0x3f));
			}
			*to++ = (u8)(0x80 | (c & 0x3f));
		}
	}
	plain_len = (u32)(to - plain);
	m->name = start, m->name_len = (u32)(to - start);
	return p;
}

// member reads `"name": value`.
static const u8 *member(const u8 *p, const u8 *end, int depth, struct member *m) {
	if (p == end || *p != '"') return bad(p, "a name in quotes was expected");
	m->quoted = p, m->name = p + 1;
	if (!(p = string(p + 1, end))) return 0;
	m->quoted_len = (u32)(p - m->quoted), m->name_len = m->quoted_len - 2;
	u32 i = 0, h = 2166136261u;
	for (; i < m->name_len && m->name[i] != '\\'; i++) h = (h ^ m->name[i]) * 16777619u;
	if (i < m->name_len) {
		if (!unescape(m->name, p - 1, m)) return 0;
		h = hash(m->name, m->name_len);
	}
	m->hash = h;
	if (!(p = colon(p, end))) return 0;
	m->value = p;
	if (!(p = value(p, end, depth))) return 0;
	m->value_len = (u32)(p - m->value);
	return p;
}

static int same(const u8 *a, u32 n, const char *b) {
	while (n > 0 && *b == *a) n--, a++, b++;
	return n == 0 && *b == 0;
}

// The names of the message in work: a hash table with room for twice MAX_NAMES, so that a look-up is short. A slot
// belongs to the message if it has its stamp; nothing needs to be cleared between events.
static struct slot { u32 stamp, hash, len; const u8 *name; } slots[2 * MAX_NAMES];
static u32 stamp, taken;

// take takes a name; it returns 0 if it was taken before, and -1 if there are too many names.
static int take(const u8 *name, u32 len, u32 hash) {
	u32 i = hash;
	for (;; i++) {
		struct slot *s = &slots[i % (2 * MAX_NAMES)];
		if (s->stamp != stamp) {
			if (taken == MAX_NAMES) return -1;
			taken++;
			s->stamp = stamp, s->hash = hash, s->len = len, s->name = name;
			return 1;
		}
		if (s->hash != hash || s->len != len) continue;
		u32 k = 0;
		while (k < len && s->name[k] == name[k]) k++;
		if (k == len) return 0;
	}
}

static struct member members[MAX_NAMES]; // of the message, in order
static u32 member_count;

static struct member constants[MAX_CONSTANTS]; // of the configuration
static u32 constant_count;

// add puts m into the message, unless its name is taken.
static const u8 *add(const u8 *p, const struct member *m) {
	int free = take(m->name, m->name_len, m->hash);
	if (free < 0) return bad(p, "more than 512 names");
	if (free) members[member_count++] = *m;
	return p;
}

// ---- the transform ---------------------------------------------------------------------------------------------

// collect reads an event's record into members; kind is its own "kind" if that fits into a header, else empty.
static const u8 *collect(const u8 *base, const struct event *e, const u8 **kind, u32 *kind_len) {
	struct member m;
	member_count = taken = plain_len = *kind_len = 0;
	if (++stamp == 0) { // 2^32 events later old stamps would look like new ones
		__builtin_memset(slots, 0, sizeof slots);
		stamp = 1;
	}
	const u8 *p = base + e->prefix, *end = p + e->prefix_len;
	while (p < end) { // the host made it, well formed: only its names matter here
		if (!(p = member(p, end, 1, &m))) __builtin_trap();
		if (take(m.name, m.name_len, m.hash) < 0) return bad(base + e->data, "too many identity levels");
		if (p < end) p++; // the comma
	}
	for (u32 i = 0; i < constant_count; i++)
		if (!add(base + e->data, &constants[i])) return 0;

	p = base + e->data, end = p + e->data_len;
	p = space(p, end);
	if (p == end || *p != '{') return bad(p, "an opening brace was expected");
	p = space(p + 1, end);
	if (p < end && *p == '}') p++;
	else for (int more = 1; more; ) {
		if (!(p = member(p, end, 1, &m))) return 0;
		if (same(m.name, m.name_len, "metric")) {
			m.quoted = (const u8 *)"\"data\"", m.quoted_len = 6;
			m.name = m.quoted + 1, m.name_len = 4, m.hash = hash(m.name, 4);
		} else if (*kind_len == 0 && same(m.name, m.name_len, "kind") && *m.value == '"' && m.value_len <= MAX_KIND + 2) {
			u32 i = 1;
			while (m.value[i] > ' ' && m.value[i] < 0x7f && m.value[i] != '\\' && m.value[i] != '"') i++;
			if (i + 1 == m.value_len) *kind = m.value + 1, *kind_len = i - 1;
		}
		if (!add(p, &m)) return 0;
		p = space(p, end);
		if (p == end || (*p != ',' && *p != '}')) return bad(p, "a comma or the closing brace was expected");
		more = *p == ',';
		p = more ? space(p + 1, end) : p + 1;
	}
	p = space(p, end);
	return p == end ? p : bad(p, "more text behind the object");
}

// write appends the record of one event and returns its end.
static u8 *write(u8 *out, const u8 *base, u32 index, const struct event *e) {
	struct record *r = (struct record *)out;
	const u8 *kind = 0;
	u32 kind_len = 0;
	// Every byte written below comes from one of these, except names and punctuation, which are fewer than 256.
	u64 room = sizeof *r + (u64)e->subject_len + MAX_KIND + e->prefix_len + MAX_CONFIG + e->data_len + 256;
	if (e->subject_len > 0xffff || !reach(out, room)) __builtin_trap();
	const u8 *ok = collect(base, e, &kind, &kind_len);
	*r = (struct record){.index = index, .kind = ok ? 0 : 1};
	out += sizeof *r;
	if (!ok) {
		u8 *reason = out;
		out = text(out, "the record is not a usable JSON object: ");
		out = text(out, why);
		out = text(out, " at byte ");
		out = decimal(out, (u32)(where - base) - e->data);
		r->payload_len = (u32)(out - reason);
		return out;
	}
	r->subject_len = (u16)e->subject_len;
	out = copy(out, base + e->subject, e->subject_len);
	u8 *headers = out;
	if (kind_len > 0) {
		out = text(out, "Edge-Kind: ");
		out = copy(out, kind, kind_len);
		out = text(out, "\r\n");
	}
	u8 *payload = out;
	*out++ = '{';
	out = copy(out, base + e->prefix, e->prefix_len);
	for (u32 i = 0; i < member_count; i++) {
		const struct member *m = &members[i];
		if (out - payload > 1) *out++ = ',';
		out = copy(out, m->quoted, m->quoted_len);
		*out++ = ':';
		out = copy(out, m->value, m->value_len);
	}
	*out++ = '}';
	r->headers_len = (u32)(payload - headers);
	r->payload_len = (u32)(out - payload);
	return out;
}

// ---- edge_v1 ---------------------------------------------------------------------------------------------------

// edge_v1_buffer returns where the host may write a frame of len bytes; 0 refuses. What an earlier call returned is
// no longer used afterwards.
EXPORT("edge_v1_buffer") u8 *edge_v1_buffer(u32 len) {
	u8 *buffer = align8(&__heap_base);
	if (len > MAX_FRAME || !reach(buffer, len + 8)) return 0;
	records = align8(buffer + len);
	return buffer;
}

// edge_v1_config takes the members of one JSON object, for every payload. 1: not a JSON object; 2: more
// than MAX_CONFIG bytes or MAX_CONSTANTS members, or an escape in a name.
EXPORT("edge_v1_config") u32 edge_v1_config(const u8 *p, u32 len) {
	static u8 kept[MAX_CONFIG]; // the host may use its buffer again
	if (len > MAX_CONFIG) return 2;
	copy(kept, p, len);
	const u8 *end = kept + len;
	constant_count = 0;
	p = space(kept, end);
	if (p == end || *p != '{' || !(p = container(p, end, 0)) || space(p, end) != end) return 1;
	for (p = space(kept, end) + 1;; p++) {
		p = space(p, end);
		if (*p == '}') return 0; // only in an empty object: a name follows every comma
		if (constant_count == MAX_CONSTANTS) return 2;
		struct member *m = &constants[constant_count++];
		if (!(p = member(p, end, 1, m))) return 2;
		if (m->name < kept || m->name >= kept + MAX_CONFIG) return 2; // an escaped name: its text would not be kept
		p = space(p, end);
		if (*p == '}') return 0;
	}
}

// edge_v1_run turns one frame into records.
EXPORT("edge_v1_run") u64 edge_v1_run(u8 *base, u32 len) {
	struct frame *f = (struct frame *)base;
	const struct event *events = (const struct event *)(base + sizeof *f);
	if (len < sizeof *f || f->magic != MAGIC || f->count > (len - sizeof *f) / sizeof *events) __builtin_trap();
	u8 *out = records;
	for (u32 i = 0; i < f->count; i++) {
		f->progress = i; // if this event does harm, the host's message can name it
		out = write(out, base, i, &events[i]);
	}
	return (u64)(u32)records << 32 | (u32)(out - records);
}
