package publisher

import (
	"testing"

	natsserver "github.com/nats-io/nats-server/v2/server"
)

// acknowledged is every error that server 2.15.3 puts into an acknowledgement, with what the table of refusals assumes
// of it. A part in braces is filled in by the server.
var acknowledged = []struct {
	id     natsserver.ErrorIdentifier
	status int
	text   string
}{
	{natsserver.JSAccountResourcesExceededErr, 400, "resource limits exceeded for account"},
	{natsserver.JSClusterNotLeaderErr, 500, "JetStream cluster can not handle request"},
	{natsserver.JSInsufficientResourcesErr, 503, "insufficient resources"},
	{natsserver.JSStreamMessageExceedsMaximumErr, 400, "message size exceeds maximum allowed"},
	{natsserver.JSStreamNotMatchErr, 400, "expected stream does not match"},
	{natsserver.JSStreamSequenceNotMatchErr, 503, "expected stream sequence does not match"},
	{natsserver.JSStreamWrongLastMsgIDErrF, 400, "wrong last msg ID: {id}"},
	{natsserver.JSStreamWrongLastSequenceErrF, 400, "wrong last sequence: {seq}"},
	{natsserver.JSStreamStoreFailedF, 503, "{err}"},
	{natsserver.JSStreamHeaderExceedsMaximumErr, 400, "header size exceeds maximum allowed of 64k"},
	{natsserver.JSStreamSealedErr, 400, "invalid operation on sealed stream"},
	{natsserver.JSStreamRollupFailedF, 500, "{err}"},
	{natsserver.JSNoLimitsErr, 400, "no JetStream default or applicable tiered limit present"},
	{natsserver.JSStreamDuplicateMessageConflict, 409, "duplicate message id is in process"},
	{natsserver.JSStreamWrongLastSequenceConstantErr, 400, "wrong last sequence"},
	{natsserver.JSMessageTTLInvalidErr, 400, "invalid per-message TTL"},
	{natsserver.JSMessageTTLDisabledErr, 400, "per-message TTL is disabled"},
	{natsserver.JSStreamTooManyRequests, 429, "too many requests"},
	{natsserver.JSMessageIncrDisabledErr, 400, "message counters is disabled"},
	{natsserver.JSMessageIncrMissingErr, 400, "message counter increment is missing"},
	{natsserver.JSMessageIncrPayloadErr, 400, "message counter has payload"},
	{natsserver.JSMessageIncrInvalidErr, 400, "message counter increment is invalid"},
	{natsserver.JSMessageCounterBrokenErr, 400, "message counter is broken"},
	{natsserver.JSAtomicPublishDisabledErr, 400, "atomic publish is disabled"},
	{natsserver.JSAtomicPublishMissingSeqErr, 400, "atomic publish sequence is missing"},
	{natsserver.JSAtomicPublishIncompleteBatchErr, 400, "atomic publish batch is incomplete"},
	{natsserver.JSAtomicPublishUnsupportedHeaderBatchErr, 400, "atomic publish unsupported header used: {header}"},
	{natsserver.JSAtomicPublishInvalidBatchIDErr, 400, "atomic publish batch ID is invalid"},
	{natsserver.JSRequiredApiLevelErr, 412, "JetStream minimum api level required"},
	{natsserver.JSMessageSchedulesDisabledErr, 400, "message schedules is disabled"},
	{natsserver.JSMessageSchedulesPatternInvalidErr, 400, "message schedules pattern is invalid"},
	{natsserver.JSMessageSchedulesTargetInvalidErr, 400, "message schedules target is invalid"},
	{natsserver.JSMessageSchedulesTTLInvalidErr, 400, "message schedules invalid per-message TTL"},
	{natsserver.JSMessageSchedulesRollupInvalidErr, 400, "message schedules invalid rollup"},
	{natsserver.JSStreamExpectedLastSeqPerSubjectInvalid, 400, "missing sequence for expected last sequence per subject"},
	{natsserver.JSAtomicPublishTooLargeBatchErrF, 400, "atomic publish batch is too large: {size}"},
	{natsserver.JSAtomicPublishInvalidBatchCommitErr, 400, "atomic publish batch commit is invalid"},
	{natsserver.JSAtomicPublishContainsDuplicateMessageErr, 400, "atomic publish batch contains duplicate message id"},
	{natsserver.JSMessageSchedulesSourceInvalidErr, 400, "message schedules source is invalid"},
	{natsserver.JSBatchPublishDisabledErr, 400, "batch publish is disabled"},
	{natsserver.JSBatchPublishInvalidPatternErr, 400, "batch publish pattern is invalid"},
	{natsserver.JSBatchPublishInvalidBatchIDErr, 400, "batch publish ID is invalid"},
	{natsserver.JSBatchPublishUnknownBatchIDErr, 400, "batch publish ID unknown"},
	{natsserver.JSAtomicPublishTooManyInflight, 429, "atomic publish too many inflight"},
	{natsserver.JSBatchPublishTooManyInflight, 429, "batch publish too many inflight"},
	{natsserver.JSMessageSchedulesSchedulerInvalidErr, 400, "message schedules invalid scheduler"},
	{natsserver.JSMessageSchedulesTimeZoneInvalidErr, 400, "message schedules time zone is invalid"},
	{natsserver.JSMessageSourceHdrNotAllowedErr, 400, "message stream source header is not allowed"},
}

// inTable tells whether a number has a decision of its own.
func inTable(code int) bool {
	_, ok := refusals[code]
	return ok || code == codeStoreFailed
}

// TestCodesComplete holds the table against the server's own list: a server that is upgraded in go.mod and has a new
// error, lost one or means another thing by it fails here, until somebody has looked whether a publication can get it.
func TestCodesComplete(t *testing.T) {
	listed := make(map[natsserver.ErrorIdentifier]string)
	note := func(id natsserver.ErrorIdentifier, where string) {
		t.Helper()
		if other := listed[id]; other != "" {
			t.Errorf("%d is in %s and in %s", id, other, where)
		}
		listed[id] = where
		if natsserver.ApiErrors[id] == nil {
			t.Errorf("%d in %s: the server does not know it", id, where)
		}
	}
	for _, id := range managementOnly {
		note(id, "managementOnly")
		if inTable(int(id)) {
			t.Errorf("%d is in the table, but no acknowledgement carries it", id)
		}
	}
	for _, c := range acknowledged {
		note(c.id, "acknowledged")
		if !inTable(int(c.id)) {
			t.Errorf("%d %s: an acknowledgement can carry it, and the table lacks it", c.id, c.text)
		}
		if e := natsserver.ApiErrors[c.id]; e != nil && (e.Code != c.status || e.Description != c.text || int(e.ErrCode) != int(c.id)) {
			t.Errorf("%d is %d %q in the server, the table assumes %d %q", c.id, e.Code, e.Description, c.status, c.text)
		}
	}
	for id, e := range natsserver.ApiErrors {
		if listed[id] == "" {
			t.Errorf("%d %q is new: see whether an acknowledgement can carry it, and put it into refusals and acknowledged, or into managementOnly", id, e.Description)
		}
	}
	for code := range refusals {
		if listed[natsserver.ErrorIdentifier(code)] != "acknowledged" {
			t.Errorf("%d is in the table, and the server puts it into no acknowledgement", code)
		}
	}
}
