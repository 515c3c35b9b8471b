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

#include <wasm_simd128.h>

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef u64 word __attribute__((aligned(1), may_alias)); // eight bytes at any address

#define EXPORT(name) __attribute__((export_name(name)))
#define RARE __attribute__((noinline, cold)) // keeps what seldom happens out of the way of what always does

enum {
	MAGIC = 0x31474445,   // "EDG1"
	MAX_FRAME = 16 << 20, // more input than this is refused
	MAX_CONFIG = 4096,    // bytes of configuration
	MAX_CONSTANTS = 64,   // members of the configuration
	MAX_NAMES = 512,      // different names in one message
	MAX_KIND = 64,        // longest value of the header
	MAX_DEPTH = 128,      // containers inside one another
	SLACK = 16,           // bytes that are read and written at once
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

// Memory is: stack, statics | frame buffer | records. Only the buffer's end and the end of memory ever move, up. Behind
// every text that is read here there are more bytes of this memory, so that SLACK bytes may be read at once anywhere
// in it; what they say behind the text's end is never used.
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

// copy returns the end of what it wrote, and may spoil up to SLACK bytes behind it. Short pieces are moved here,
// because a bulk instruction leaves compiled code.
static u8 *copy(u8 *to, const u8 *from, u32 n) {
	if (n > 512) __builtin_memcpy(to, from, n);
	else for (u32 i = 0; i < n; i += 16) wasm_v128_store(to + i, wasm_v128_load(from + i));
	return to + n;
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

RARE static const u8 *bad(const u8 *p, const char *what) { return why = what, where = p, (const u8 *)0; }

RARE static const u8 *spaces(const u8 *p, const u8 *end) {
	while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) p++;
	return p;
}

static const u8 *space(const u8 *p, const u8 *end) { return *p > ' ' ? p : spaces(p, end); }

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
RARE static const u8 *escape(const u8 *p, const u8 *end, u32 *character) {
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

// plain_run returns the position, at most at end, of the next byte that is a quote, a backslash, a control character
// or, as a negative number, not ASCII. It looks at sixteen bytes at a time.
static const u8 *plain_run(const u8 *p, const u8 *end) {
	u32 hit;
	for (;; p += 16) {
		v128_t v = wasm_v128_load(p);
		hit = wasm_i8x16_bitmask(wasm_v128_or(wasm_i8x16_lt(v, wasm_i8x16_const_splat(' ')),
			wasm_v128_or(wasm_i8x16_eq(v, wasm_i8x16_const_splat('"')), wasm_i8x16_eq(v, wasm_i8x16_const_splat('\\')))));
		if (hit) break;
		if (p + 16 >= end) return end;
	}
	p += __builtin_ctz(hit);
	return p < end ? p : end;
}

// string reads from behind the opening quote to behind the closing one; the rest of it when it is not plain.
RARE static const u8 *string_rest(const u8 *p, const u8 *end) {
	u32 ignored;
	for (;;) {
		if (p == end) return bad(p, "the text ends too early");
		if (*p == '"') return p + 1;
		if (*p < ' ') return bad(p, "control character in a string");
		p = *p == '\\' ? escape(p, end, &ignored) : wide(p, end);
		if (!p) return 0;
		p = plain_run(p, end);
	}
}

static const u8 *string(const u8 *p, const u8 *end) {
	p = plain_run(p, end);
	return p < end && *p == '"' ? p + 1 : string_rest(p, end);
}

static const u8 *digits(const u8 *p, const u8 *end) { // at least one
	const u8 *start = p;
	u32 n;
	do {
		v128_t v = wasm_i8x16_sub(wasm_v128_load(p), wasm_i8x16_const_splat('0'));
		n = (u32)__builtin_ctz(~wasm_i8x16_bitmask(wasm_u8x16_lt(v, wasm_i8x16_const_splat(10)))); // 16 if all are
		p += n;
	} while (n == 16 && p < end);
	if (p > end) p = end;
	return p > start ? p : bad(p, "a digit was expected");
}

RARE static const u8 *number_rest(const u8 *p, const u8 *end) {
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

// number takes a short whole number here.
static const u8 *number(const u8 *p, const u8 *end) {
	v128_t v = wasm_i8x16_sub(wasm_v128_load(p), wasm_i8x16_const_splat('0'));
	u32 n = (u32)__builtin_ctz(~wasm_i8x16_bitmask(wasm_u8x16_lt(v, wasm_i8x16_const_splat(10))));
	const u8 *after = p + n;
	if (n - 1 >= 15 || *p == '0' || after >= end || *after == '.' || (*after | 0x20) == 'e') return number_rest(p, end);
	return after;
}

RARE static const u8 *literal(const u8 *p, const u8 *end, const char *s) {
	const u8 *start = p;
	for (; *s; s++, p++)
		if (p >= end || *p != *s) return bad(start, "a value was expected");
	return p;
}

static const u8 *container(const u8 *p, const u8 *end, int depth);

// value reads any value; depth is the number of containers that are open around it.
static const u8 *value(const u8 *p, const u8 *end, int depth) {
	if (p >= end) return bad(p, "the text ends too early");
	u8 c = *p;
	if (c == '"') return string(p + 1, end);
	if (c == '-' || (u8)(c - '0') < 10) return number(p, end);
	if (c == '{' || c == '[') return container(p, end, depth);
	if (c == 't') return literal(p, end, "true");
	if (c == 'f') return literal(p, end, "false");
	if (c == 'n') return literal(p, end, "null");
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
			if (p >= end || *p != '"') return bad(p, "a name in quotes was expected");
			if (!(p = string(p + 1, end)) || !(p = colon(p, end))) return 0;
		}
		if (!(p = value(p, end, depth + 1))) return 0;
		p = space(p, end);
		if (p < end && *p == close) return p + 1;
		if (p >= end || *p != ',') return bad(p, "a comma or the closing bracket was expected");
	}
}

// ---- members and names -----------------------------------------------------------------------------------------

struct name {
	const u8 *at; // without quotes and escapes
	u32 len;
	u64 hash;
};

static u8 plain[4096 + SLACK]; // names that had escapes, without them
static u32 plain_len;

static u64 hash(const u8 *p, u32 n) { // of eight bytes at a time
	u64 h = n;
	for (; n > 8; n -= 8, p += 8) h = (h ^ *(const word *)p) * 0x9e3779b97f4a7c15, h ^= h >> 32;
	if (n > 0) h = (h ^ *(const word *)p << (64 - 8 * n)) * 0x9e3779b97f4a7c15, h ^= h >> 32;
	return h;
}

// unescape gives a name without its escapes. The string has been read, so it is well formed.
static const u8 *unescape(const u8 *p, const u8 *end, struct name *name) {
	u8 *start = plain + plain_len, *to = start;
	while (p < end) {
		if (plain + sizeof plain - SLACK - to < 4) return bad(p, "too many names with escapes");
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
	name->at = start, name->len = (u32)(to - start);
	return p;
}

// member reads `"name": value` and tells the name and where the value begins.
static const u8 *member(const u8 *p, const u8 *end, struct name *name, const u8 **val) {
	if (p >= end || *p != '"') return bad(p, "a name in quotes was expected");
	const u8 *start = p + 1;
	if (!(p = string(start, end))) return 0;
	name->at = start, name->len = (u32)(p - start) - 1;
	for (u32 i = 0; i < name->len; i += 16) { // is there an escape?
		u32 hit = wasm_i8x16_bitmask(wasm_i8x16_eq(wasm_v128_load(start + i), wasm_i8x16_const_splat('\\')));
		if (!hit) continue;
		if (i + (u32)__builtin_ctz(hit) < name->len && !unescape(start, p - 1, name)) return 0;
		break;
	}
	name->hash = hash(name->at, name->len);
	if (!(p = colon(p, end))) return 0;
	*val = p;
	return value(p, end, 1);
}

static int same(const struct name *n, const char *s, u32 len) {
	u32 i = 0;
	while (i < len && i < n->len && n->at[i] == (u8)s[i]) i++;
	return i == len && n->len == len;
}

// The names of the message in work: a hash table with room for twice MAX_NAMES, so that a look-up is short. A slot
// belongs to the message if it has its stamp; nothing needs to be cleared between events.
static struct slot { u32 stamp; struct name name; } slots[2 * MAX_NAMES];
static u32 stamp, taken;

// take takes a name; it returns 0 if it was taken before, and -1 if there are too many names.
static int take(const struct name *name) {
	for (u32 i = (u32)name->hash;; i++) {
		struct slot *s = &slots[i % (2 * MAX_NAMES)];
		if (s->stamp != stamp) {
			if (taken == MAX_NAMES) return -1;
			taken++;
			s->stamp = stamp, s->name = *name;
			return 1;
		}
		if (s->name.hash != name->hash || s->name.len != name->len) continue;
		u32 k = 0;
		while (k < name->len && s->name.at[k] == name->at[k]) k++;
		if (k == name->len) return 0;
	}
}

// What the message consists of: stretches of members with the commas between them, as they stand in the record, or
// the value of a member that gets another name.
static struct piece { const u8 *at; u32 len, renamed; } pieces[MAX_NAMES];
static u32 piece_count;

static struct constant { struct name name; const u8 *at; u32 len; } constants[MAX_CONSTANTS]; // of the configuration
static u32 constant_count;

static void keep(const u8 *at, const u8 *end, u32 renamed) {
	struct piece *last = pieces + piece_count;
	if (piece_count > 0 && !renamed && !(--last)->renamed && last->at + last->len + 1 == at && at[-1] == ',') {
		last->len = (u32)(end - last->at);
		return;
	}
	pieces[piece_count++] = (struct piece){at, (u32)(end - at), renamed};
}

#define DATA "\"data\":" // what "metric" becomes

// ---- the transform ---------------------------------------------------------------------------------------------

// collect reads an event's record into pieces; kind is its own "kind" if that fits into a header, else empty.
static const u8 *collect(const u8 *base, const struct event *e, const u8 **kind, u32 *kind_len) {
	struct name name;
	const u8 *val;
	piece_count = taken = plain_len = *kind_len = 0;
	if (++stamp == 0) { // 2^32 events later old stamps would look like new ones
		__builtin_memset(slots, 0, sizeof slots);
		stamp = 1;
	}
	const u8 *p = base + e->prefix, *end = p + e->prefix_len;
	while (p < end) { // the host made it, well formed: only its names matter here
		if (!(p = member(p, end, &name, &val))) __builtin_trap();
		if (take(&name) < 0) return bad(base + e->data, "too many identity levels");
		p++; // the comma
	}
	for (u32 i = 0; i < constant_count; i++) {
		int free = take(&constants[i].name);
		if (free < 0) return bad(base + e->data, "more than 512 names");
		if (free) keep(constants[i].at, constants[i].at + constants[i].len, 0);
	}
	p = base + e->data, end = p + e->data_len;
	p = space(p, end);
	if (p >= end || *p != '{') return bad(p, "an opening brace was expected");
	p = space(p + 1, end);
	if (p < end && *p == '}') p++;
	else for (int more = 1; more; ) {
		const u8 *start = p;
		if (!(p = member(p, end, &name, &val))) return 0;
		u32 renamed = same(&name, "metric", 6);
		if (renamed) {
			name = (struct name){(const u8 *)DATA + 1, 4, 0};
			name.hash = hash(name.at, name.len);
			start = val;
		} else if (*kind_len == 0 && same(&name, "kind", 4) && *val == '"' && p - val <= MAX_KIND + 2) {
			u32 n = 1;
			while (val[n] > ' ' && val[n] < 0x7f && val[n] != '\\' && val[n] != '"') n++;
			if (val + n + 1 == p) *kind = val + 1, *kind_len = n - 1;
		}
		int free = take(&name);
		if (free < 0) return bad(p, "more than 512 names");
		if (free) keep(start, p, renamed);
		p = space(p, end);
		if (p >= end || (*p != ',' && *p != '}')) return bad(p, "a comma or the closing brace was expected");
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
	// Every byte written below comes from one of these, except names and punctuation, which are fewer than 256 with
	// what copy may spoil.
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
	for (u32 i = 0; i < piece_count; i++) {
		if (out - payload > 1) *out++ = ',';
		if (pieces[i].renamed) out = text(out, DATA);
		out = copy(out, pieces[i].at, pieces[i].len);
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
	if (len > MAX_FRAME || !reach(buffer, len + 8 + SLACK)) return 0;
	records = align8(buffer + len);
	return buffer;
}

// edge_v1_config takes the members of one JSON object, for every payload. 1: not a JSON object; 2: more
// than MAX_CONFIG bytes or MAX_CONSTANTS members, or an escape in a name.
EXPORT("edge_v1_config") u32 edge_v1_config(const u8 *p, u32 len) {
	static u8 kept[MAX_CONFIG + SLACK]; // the host may use its buffer again
	if (len > MAX_CONFIG) return 2;
	copy(kept, p, len);
	const u8 *end = kept + len;
	constant_count = 0;
	p = space(kept, end);
	if (p >= end || *p != '{' || !(p = container(p, end, 0)) || space(p, end) != end) return 1;
	for (p = space(kept, end) + 1;; p++) {
		p = space(p, end);
		if (*p == '}') return 0; // only in an empty object: a name follows every comma
		if (constant_count == MAX_CONSTANTS) return 2;
		struct constant *c = &constants[constant_count++];
		const u8 *val;
		c->at = p, plain_len = 0;
		if (!(p = member(p, end, &c->name, &val)) || plain_len > 0) return 2; // plain is not kept
		c->len = (u32)(p - c->at);
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
