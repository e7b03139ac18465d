#include "core/agent/codec.h"

#include "base/check.h"
#include "base/crc32c.h"
#include "base/units.h"
#include "core/agent/codec_pb.h"
#include "core/words/limits.h"

/* The sum of a clock reading and either limit fits 64 bits. */
#define LEASE_MAX_NS     (3600 * NS_PER_SECOND)
#define TIME_LEFT_MAX_NS (INT32_MAX * NS_PER_SECOND)

/* The kinds are the field numbers of the oneofs. */
_Static_assert((int)FROM_AGENT_HELLO == WIRE__FROM_AGENT__KIND_HELLO &&
                   (int)FROM_AGENT_LOG_DATA == WIRE__FROM_AGENT__KIND_LOG_DATA &&
                   (int)FROM_AGENT_EXEC_DATA == WIRE__FROM_AGENT__KIND_EXEC_DATA &&
                   (int)FROM_AGENT_EXEC_END == WIRE__FROM_AGENT__KIND_EXEC_END,
               "kinds of agent messages");
_Static_assert((int)FROM_CONTROLLER_WELCOME == WIRE__FROM_CONTROLLER__KIND_WELCOME &&
                   (int)FROM_CONTROLLER_LOG_CLOSE == WIRE__FROM_CONTROLLER__KIND_LOG_CLOSE &&
                   (int)FROM_CONTROLLER_EXEC_OPEN == WIRE__FROM_CONTROLLER__KIND_EXEC_OPEN &&
                   (int)FROM_CONTROLLER_EXEC_INPUT == WIRE__FROM_CONTROLLER__KIND_EXEC_INPUT &&
                   (int)FROM_CONTROLLER_EXEC_RESIZE == WIRE__FROM_CONTROLLER__KIND_EXEC_RESIZE &&
                   (int)FROM_CONTROLLER_EXEC_CLOSE == WIRE__FROM_CONTROLLER__KIND_EXEC_CLOSE,
               "kinds of controller messages");
_Static_assert((int)FROM_CONTROLLER_RANK_TABLE == WIRE__FROM_CONTROLLER__KIND_RANK_TABLE &&
                   (int)FROM_CONTROLLER_SAY_AGAIN == WIRE__FROM_CONTROLLER__KIND_SAY_AGAIN &&
                   (int)FROM_CONTROLLER_ERRAND_START == WIRE__FROM_CONTROLLER__KIND_ERRAND_START &&
                   (int)FROM_CONTROLLER_ERRAND_STOP == WIRE__FROM_CONTROLLER__KIND_ERRAND_STOP,
               "kinds of controller messages");
_Static_assert((int)REPORT_PEER_GONE == WIRE__REPORT_KIND__REPORT_KIND_PEER_GONE &&
                   (int)REPORT_NOTE == WIRE__REPORT_KIND__REPORT_KIND_NOTE &&
                   (int)REPORT_RETRY == WIRE__REPORT_KIND__REPORT_KIND_RETRY &&
                   (int)REPORT_ROUTES == WIRE__REPORT_KIND__REPORT_KIND_ROUTES &&
                   (int)NOTICE_DRAIN == WIRE__NOTICE_KIND__NOTICE_KIND_DRAIN,
               "kinds of reports and notices");

_Static_assert((int)FROM_AGENT_TETHER == WIRE__FROM_AGENT__KIND_TETHER &&
                   (int)FROM_AGENT_HEARTBEAT == WIRE__FROM_AGENT__KIND_HEARTBEAT &&
                   (int)FROM_AGENT_REPORTS == WIRE__FROM_AGENT__KIND_REPORTS &&
                   (int)FROM_AGENT_STEPS == WIRE__FROM_AGENT__KIND_STEPS,
               "the kinds between");
_Static_assert((int)FROM_CONTROLLER_REFUSED == WIRE__FROM_CONTROLLER__KIND_REFUSED &&
                   (int)FROM_CONTROLLER_HEARTBEAT_ACK == WIRE__FROM_CONTROLLER__KIND_HEARTBEAT_ACK &&
                   (int)FROM_CONTROLLER_REPORTS_ACK == WIRE__FROM_CONTROLLER__KIND_REPORTS_ACK &&
                   (int)FROM_CONTROLLER_START == WIRE__FROM_CONTROLLER__KIND_START &&
                   (int)FROM_CONTROLLER_STOP == WIRE__FROM_CONTROLLER__KIND_STOP,
               "the kinds between");
_Static_assert((int)FROM_CONTROLLER_NOTICE == WIRE__FROM_CONTROLLER__KIND_NOTICE &&
                   (int)FROM_CONTROLLER_FORGET == WIRE__FROM_CONTROLLER__KIND_FORGET &&
                   (int)FROM_CONTROLLER_LOG_OPEN == WIRE__FROM_CONTROLLER__KIND_LOG_OPEN,
               "the kinds between");
_Static_assert((uint64_t)FRAME_BYTES_MAX + FRAME_HEADER_BYTES <= UINT32_MAX, "a frame's length is 32 bits");
_Static_assert((int)CODEC_ARENA_BYTES > (int)FRAME_BYTES_MAX, "the largest frame can be decoded");

static void *allocate(void *context, size_t size)
{
    struct codec_memory *memory = context;
    void *bytes = arena_try_alloc(memory->arena, size);
    memory->full = memory->full || !bytes;
    return bytes;
}

static void free_nothing(void *context, void *memory)
{
    (void)context;
    (void)memory;
}

void codec_memory_init(struct codec_memory *memory, struct arena *arena)
{
    CHECK(memory && arena);
    *memory = (struct codec_memory){
        .allocator = {.alloc = allocate, .free = free_nothing, .allocator_data = memory}, .arena = arena};
}

int codec_unpack_error(const struct codec_memory *memory, size_t len, struct error *error)
{
    if (memory->full)
        return error_set(error, ERROR_LIMIT, "message needs more than %zu bytes of memory",
                         memory->arena->limit_bytes);
    return error_set(error, ERROR_CORRUPT, "%zu bytes that are no message", len);
}

char *codec_text(struct arena *arena, struct str s)
{
    static char empty[1];
    return s.len ? arena_strdup(arena, s) : empty;
}

void *codec_try_array(struct arena *arena, size_t count, size_t size, struct error *error)
{
    CHECK(size > 0);
    size_t total;
    void *memory = __builtin_mul_overflow(count, size, &total) ? NULL : arena_try_alloc(arena, total);
    if (!memory)
        error_set(error, ERROR_LIMIT, "message needs more than %zu bytes of memory", arena->limit_bytes);
    return memory;
}

/* --- frames --------------------------------------------------------------------------------------- */

static void put_u32(char *out, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        out[i] = (char)(value >> (8 * i) & 0xff);
}

static uint32_t get_u32(const char *data)
{
    uint32_t value = 0;
    for (int i = 0; i < 4; i++)
        value |= (uint32_t)(unsigned char)data[i] << (8 * i);
    return value;
}

static int put_frame(struct buf *out, const ProtobufCMessage *message, struct error *error)
{
    size_t len = protobuf_c_message_get_packed_size(message);
    if (len > FRAME_BYTES_MAX)
        return error_set(error, ERROR_LIMIT, "message of %zu bytes (FRAME_BYTES_MAX is %d)", len,
                         FRAME_BYTES_MAX);
    buf_reserve(out, FRAME_HEADER_BYTES + len);
    char *frame = out->data + out->len;
    size_t packed = protobuf_c_message_pack(message, (uint8_t *)frame + FRAME_HEADER_BYTES);
    CHECK(packed == len && len > 0);
    put_u32(frame, (uint32_t)len);
    put_u32(frame + 4, crc32c(0, frame + FRAME_HEADER_BYTES, len));
    out->len += FRAME_HEADER_BYTES + len;
    out->data[out->len] = 0;
    return 0;
}

int codec_frame(const char *data, size_t len, struct str *ret_bytes, size_t *ret_used, struct error *error)
{
    CHECK(data || len == 0);
    if (len < FRAME_HEADER_BYTES) {
        *ret_used = FRAME_HEADER_BYTES;
        return 0;
    }
    uint32_t size = get_u32(data);
    if (size == 0 || size > FRAME_BYTES_MAX)
        return error_set(error, ERROR_CORRUPT, "frame of %u bytes", size);
    *ret_used = FRAME_HEADER_BYTES + (size_t)size;
    if (len < *ret_used)
        return 0;
    if (crc32c(0, data + FRAME_HEADER_BYTES, size) != get_u32(data + 4))
        return error_set(error, ERROR_CORRUPT, "frame of %u bytes: wrong checksum", size);
    CHECK(*ret_used <= len);
    *ret_bytes = (struct str){data + FRAME_HEADER_BYTES, size};
    return 1;
}

/* --- messages of agents --------------------------------------------------------------------------- */

int codec_put_agent(struct buf *out, const struct from_agent *message, struct error *error)
{
    ARENA_CLEANUP struct arena arena = {0};
    Wire__FromAgent pb = WIRE__FROM_AGENT__INIT;
    Wire__Hello hello;
    Wire__Heartbeat heartbeat;
    Wire__Reports reports;
    Wire__LogData log_data = WIRE__LOG_DATA__INIT;
    Wire__ExecData exec_data;
    Wire__ExecEnd exec_end = WIRE__EXEC_END__INIT;
    pb.kind_case = (Wire__FromAgent__KindCase)message->kind;
    switch (message->kind) {
    case FROM_AGENT_HELLO:
    case FROM_AGENT_TETHER:
        codec_write_hello(&arena, &message->hello, &hello);
        pb.hello = &hello;
        break;
    case FROM_AGENT_HEARTBEAT:
    case FROM_AGENT_STEPS:
        codec_write_heartbeat(&arena, &message->heartbeat, &heartbeat);
        pb.heartbeat = &heartbeat;
        break;
    case FROM_AGENT_REPORTS:
        codec_write_reports(&arena, &message->reports, &reports);
        pb.reports = &reports;
        break;
    case FROM_AGENT_LOG_DATA:
        log_data.stream = message->log_data.stream;
        log_data.bytes.data = (uint8_t *)(uintptr_t)message->log_data.bytes.data; /* packing only reads */
        log_data.bytes.len = message->log_data.bytes.len;
        log_data.end = message->log_data.end;
        log_data.error = codec_text(&arena, message->log_data.error);
        pb.log_data = &log_data;
        break;
    case FROM_AGENT_EXEC_DATA:
        codec_write_exec_data(&message->exec_data, &exec_data);
        pb.exec_data = &exec_data;
        break;
    case FROM_AGENT_EXEC_END:
        exec_end.stream = message->exec_end.stream;
        exec_end.exit_code = message->exec_end.exit_code;
        exec_end.error = codec_text(&arena, message->exec_end.error);
        pb.exec_end = &exec_end;
        break;
    default:
        CHECK_UNREACHABLE();
    }
    return put_frame(out, &pb.base, error);
}

static int read_log_data(const Wire__LogData *pb, struct log_data *ret)
{
    *ret = (struct log_data){.stream = pb->stream,
                             .bytes = {(const char *)pb->bytes.data, pb->bytes.len},
                             .end = pb->end,
                             .error = str_from(pb->error)};
    return 0;
}

int codec_get_agent(struct arena *arena, struct str bytes, struct from_agent *ret_message,
                    struct error *error)
{
    struct codec_memory memory;
    codec_memory_init(&memory, arena);
    Wire__FromAgent *pb = wire__from_agent__unpack(&memory.allocator, bytes.len, (const uint8_t *)bytes.data);
    if (!pb)
        return codec_unpack_error(&memory, bytes.len, error);
    struct from_agent message = {.kind = (enum from_agent_kind)pb->kind_case};
    int rc;
    switch (message.kind) {
    case FROM_AGENT_HELLO:
    case FROM_AGENT_TETHER:
        rc = codec_read_hello(arena, pb->hello, &message.hello, error);
        break;
    case FROM_AGENT_HEARTBEAT:
    case FROM_AGENT_STEPS:
        rc = codec_read_heartbeat(arena, pb->heartbeat, &message.heartbeat, error);
        break;
    case FROM_AGENT_REPORTS:
        rc = codec_read_reports(arena, pb->reports, &message.reports, error);
        break;
    case FROM_AGENT_LOG_DATA:
        rc = read_log_data(pb->log_data, &message.log_data);
        break;
    case FROM_AGENT_EXEC_DATA:
        rc = codec_read_exec_data(pb->exec_data, &message.exec_data, error);
        break;
    case FROM_AGENT_EXEC_END:
        message.exec_end =
            (struct exec_end){pb->exec_end->stream, pb->exec_end->exit_code, str_from(pb->exec_end->error)};
        rc = 0;
        break;
    default:
        rc = error_set(error, ERROR_UNSUPPORTED, "agent message of an unknown kind");
    }
    if (rc == 0)
        *ret_message = message;
    return rc;
}

/* --- messages of the controller ------------------------------------------------------------------- */

/* The parts of a message, to which the oneof points while the message is packed. */
union controller_parts {
    struct {
        Wire__Welcome welcome;
        Wire__LeaseGrant grant; /* also of HEARTBEAT_ACK */
    };
    Wire__TaskLaunch start;
    Wire__TaskStop stop;
    Wire__TaskNotice notice;
    Wire__LogOpen log_open;
    Wire__ExecOpen exec_open;
    Wire__ExecData exec_input;
    Wire__ExecResize exec_resize;
    Wire__PackedRankTable rank_table;
    Wire__ErrandStart errand_start;
    Wire__TaskRejoin rejoin;
};

static void write_log_open(struct arena *arena, const struct log_open *open, Wire__LogOpen *ret)
{
    wire__log_open__init(ret);
    ret->stream = open->stream;
    ret->task = open->task;
    ret->follow = open->follow;
    ret->previous = open->previous;
    ret->tail_lines = open->tail_lines;
    ret->since_ns = open->since_ns;
    ret->limit_bytes = open->limit_bytes;
    ret->container = codec_text(arena, open->container);
    ret->timestamps = open->timestamps;
    ret->earlier = codec_text(arena, open->earlier);
    ret->attempt = open->attempt;
    ret->after = open->after;
}

static void write_notice(struct arena *arena, const struct task_notice *notice, Wire__TaskNotice *ret)
{
    CHECK(notice->kind >= NOTICE_CHECKPOINT_COMMITTED && notice->kind <= NOTICE_TABLES);
    wire__task_notice__init(ret);
    ret->kind = (Wire__NoticeKind)notice->kind;
    ret->task = notice->task;
    ret->step = notice->step;
    ret->deadline_ns = notice->deadline_ns;
    ret->reason = notice->kind == NOTICE_DRAIN ? (uint32_t)notice->reason : 0;
    if (notice->kind == NOTICE_TABLES)
        ret->tables = codec_text(arena, notice->tables);
    ret->session = notice->session;
}

static void write_packed_rank_table(const struct packed_rank_table *rank_table, Wire__PackedRankTable *ret)
{
    wire__packed_rank_table__init(ret);
    ret->number = rank_table->number;
    ret->rank_table.data = (uint8_t *)(uintptr_t)rank_table->bytes.data; /* packing only reads */
    ret->rank_table.len = rank_table->bytes.len;
}

static Wire__LeaseGrant *write_grant(const struct lease_grant *grant, Wire__LeaseGrant *part)
{
    CHECK(grant->left_ns >= 0 && (grant->number > 0 || grant->left_ns == 0));
    wire__lease_grant__init(part);
    part->number = grant->number;
    part->left_ns = grant->left_ns;
    return grant->number ? part : NULL;
}

static void write_welcome(const struct welcome *welcome, Wire__Welcome *ret, Wire__LeaseGrant *part)
{
    wire__welcome__init(ret);
    ret->grant = write_grant(&welcome->grant, part);
    ret->epoch = welcome->epoch;
    ret->lease_ns = welcome->lease_ns;
    ret->heartbeat_ns = welcome->heartbeat_ns;
    ret->chips_plus_1 = welcome->chips_plus_1;
    ret->cluster = welcome->cluster;
    ret->version = welcome->version;
}

static void write_exec_resize(const struct exec_resize *resize, Wire__ExecResize *ret)
{
    wire__exec_resize__init(ret);
    ret->stream = resize->stream;
    ret->width = resize->width;
    ret->height = resize->height;
}

/* Writes the messages that concern the machine itself. */
static void write_errand(struct arena *arena, const struct from_controller *message,
                         union controller_parts *parts, Wire__FromController *ret)
{
    switch (message->kind) {
    case FROM_CONTROLLER_ERRAND_START:
        codec_write_errand_start(arena, &message->errand_start, &parts->errand_start);
        ret->errand_start = &parts->errand_start;
        break;
    case FROM_CONTROLLER_ERRAND_STOP:
        ret->errand_stop = message->number;
        break;
    case FROM_CONTROLLER_SAY_AGAIN:
        ret->say_again = true;
        break;
    default:
        CHECK_UNREACHABLE();
    }
}

static void write_controller(struct arena *arena, const struct from_controller *message,
                             union controller_parts *parts, Wire__FromController *ret)
{
    switch (message->kind) {
    case FROM_CONTROLLER_WELCOME:
        write_welcome(&message->welcome, &parts->welcome, &parts->grant);
        ret->welcome = &parts->welcome;
        break;
    case FROM_CONTROLLER_REFUSED:
        ret->refused = codec_text(arena, message->text);
        ret->cluster = message->cluster;
        break;
    case FROM_CONTROLLER_HEARTBEAT_ACK:
        ret->heartbeat_ack = message->sent_ns;
        ret->clock_ns = message->clock_ns;
        ret->grant = write_grant(&message->grant, &parts->grant);
        break;
    case FROM_CONTROLLER_REPORTS_ACK:
        ret->reports_ack = message->number;
        break;
    case FROM_CONTROLLER_START:
        codec_write_launch(arena, &message->start, &parts->start);
        ret->start = &parts->start;
        break;
    case FROM_CONTROLLER_STOP:
        wire__task_stop__init(&parts->stop);
        parts->stop.task = message->stop.task;
        parts->stop.grace_ns = message->stop.grace_ns;
        ret->stop = &parts->stop;
        break;
    case FROM_CONTROLLER_NOTICE:
        write_notice(arena, &message->notice, &parts->notice);
        ret->notice = &parts->notice;
        break;
    case FROM_CONTROLLER_REJOIN:
        codec_write_rejoin(arena, &message->rejoin, &parts->rejoin);
        ret->rejoin = &parts->rejoin;
        break;
    case FROM_CONTROLLER_FORGET:
        ret->forget = message->task;
        break;
    case FROM_CONTROLLER_LOG_OPEN:
        write_log_open(arena, &message->log_open, &parts->log_open);
        ret->log_open = &parts->log_open;
        break;
    case FROM_CONTROLLER_LOG_CLOSE:
        ret->log_close = message->number;
        break;
    case FROM_CONTROLLER_EXEC_OPEN:
        codec_write_exec_open(arena, &message->exec_open, &parts->exec_open);
        ret->exec_open = &parts->exec_open;
        break;
    case FROM_CONTROLLER_EXEC_INPUT:
        codec_write_exec_data(&message->exec_data, &parts->exec_input);
        ret->exec_input = &parts->exec_input;
        break;
    case FROM_CONTROLLER_EXEC_RESIZE:
        write_exec_resize(&message->exec_resize, &parts->exec_resize);
        ret->exec_resize = &parts->exec_resize;
        break;
    case FROM_CONTROLLER_EXEC_CLOSE:
        ret->exec_close = message->number;
        break;
    case FROM_CONTROLLER_RANK_TABLE:
        write_packed_rank_table(&message->rank_table, &parts->rank_table);
        ret->rank_table = &parts->rank_table;
        break;
    default:
        write_errand(arena, message, parts, ret);
    }
}

int codec_put_controller(struct buf *out, const struct from_controller *message, struct error *error)
{
    ARENA_CLEANUP struct arena arena = {0};
    union controller_parts parts;
    Wire__FromController pb = WIRE__FROM_CONTROLLER__INIT;
    pb.kind_case = (Wire__FromController__KindCase)message->kind;
    write_controller(&arena, message, &parts, &pb);
    return put_frame(out, &pb.base, error);
}

static int read_grant(const Wire__LeaseGrant *pb, struct lease_grant *ret, struct error *error)
{
    *ret = pb ? (struct lease_grant){pb->number, pb->left_ns} : (struct lease_grant){0};
    if (ret->left_ns < 0 || ret->left_ns > LEASE_HOLD_MAX_NS || (ret->left_ns > 0 && ret->number == 0))
        return error_set(error, ERROR_INVALID, "a grant of %lld ns on top of the lease",
                         (long long)ret->left_ns);
    return 0;
}

static int read_welcome(const Wire__Welcome *pb, struct welcome *ret, struct error *error)
{
    *ret = (struct welcome){.epoch = pb->epoch,
                            .lease_ns = pb->lease_ns,
                            .heartbeat_ns = pb->heartbeat_ns,
                            .chips_plus_1 = pb->chips_plus_1,
                            .cluster = pb->cluster,
                            .version = pb->version};
    if (ret->cluster == 0)
        return error_set(error, ERROR_INVALID, "welcome: the controller does not say whose it is");
    if (ret->lease_ns <= 0 || ret->heartbeat_ns <= 0 || ret->lease_ns > LEASE_MAX_NS ||
        ret->heartbeat_ns > LEASE_MAX_NS)
        return error_set(error, ERROR_INVALID, "welcome: lease %lld ns, heartbeat %lld ns",
                         (long long)ret->lease_ns, (long long)ret->heartbeat_ns);
    return read_grant(pb->grant, &ret->grant, error);
}

static int read_stop(const Wire__TaskStop *pb, struct task_stop *ret, struct error *error)
{
    *ret = (struct task_stop){.task = pb->task, .grace_ns = pb->grace_ns};
    if (ret->grace_ns < 0)
        return error_set(error, ERROR_INVALID, "stop: negative grace");
    return 0;
}

static int read_notice(const Wire__TaskNotice *pb, struct task_notice *ret, struct error *error)
{
    *ret = (struct task_notice){.kind = (enum notice_kind)pb->kind,
                                .task = pb->task,
                                .step = pb->step,
                                .deadline_ns = pb->deadline_ns,
                                .reason = (enum drain_reason)pb->reason};
    if (ret->kind == NOTICE_DRAIN && ret->reason == 0)
        ret->reason = DRAIN_MAINTENANCE; /* the controller is too old to send a reason */
    if (ret->kind == NOTICE_TABLES) {
        ret->tables = str_from(pb->tables);
        ret->session = pb->session;
    }
    if (ret->kind < NOTICE_CHECKPOINT_COMMITTED || ret->kind > NOTICE_TABLES)
        return error_set(error, ERROR_UNSUPPORTED, "notice of unknown kind %d", (int)ret->kind);
    if (ret->reason > DRAIN_MOVE)
        return error_set(error, ERROR_UNSUPPORTED, "notice of unknown reason %d", (int)ret->reason);
    if (ret->tables.len > SLICE_TABLES_MAX || (ret->kind == NOTICE_TABLES && ret->step <= 0))
        return error_set(error, ERROR_INVALID, "notice of routing tables: name of %zu bytes, number %lld",
                         ret->tables.len, (long long)ret->step);
    if (ret->step < 0 || ret->deadline_ns < 0 || ret->deadline_ns > TIME_LEFT_MAX_NS)
        return error_set(error, ERROR_INVALID, "notice: negative step, or deadline out of range");
    return 0;
}

static int read_log_open(const Wire__LogOpen *pb, struct log_open *ret, struct error *error)
{
    *ret = (struct log_open){.stream = pb->stream,
                             .task = pb->task,
                             .follow = pb->follow,
                             .previous = pb->previous,
                             .tail_lines = pb->tail_lines,
                             .since_ns = pb->since_ns,
                             .limit_bytes = pb->limit_bytes,
                             .container = str_from(pb->container),
                             .timestamps = pb->timestamps,
                             .earlier = str_from(pb->earlier),
                             .attempt = pb->attempt,
                             .after = pb->after};
    if (ret->tail_lines < -1 || ret->since_ns < 0 || ret->limit_bytes < 0)
        return error_set(error, ERROR_INVALID, "log request: negative tail, time or limit");
    return 0;
}

static int read_errand(const Wire__FromController *pb, struct from_controller *ret_message,
                       struct error *error)
{
    switch (ret_message->kind) {
    case FROM_CONTROLLER_ERRAND_START:
        return codec_read_errand_start(pb->errand_start, &ret_message->errand_start, error);
    case FROM_CONTROLLER_ERRAND_STOP:
        ret_message->number = pb->errand_stop;
        return 0;
    case FROM_CONTROLLER_SAY_AGAIN:
        return 0;
    default:
        return error_set(error, ERROR_UNSUPPORTED, "controller message of an unknown kind");
    }
}

int codec_get_controller(struct arena *arena, struct str bytes, struct from_controller *ret_message,
                         struct error *error)
{
    struct codec_memory memory;
    codec_memory_init(&memory, arena);
    Wire__FromController *pb =
        wire__from_controller__unpack(&memory.allocator, bytes.len, (const uint8_t *)bytes.data);
    if (!pb)
        return codec_unpack_error(&memory, bytes.len, error);
    struct from_controller message = {.kind = (enum from_controller_kind)pb->kind_case};
    int rc = 0;
    switch (message.kind) {
    case FROM_CONTROLLER_WELCOME:
        rc = read_welcome(pb->welcome, &message.welcome, error);
        break;
    case FROM_CONTROLLER_REFUSED:
        message.text = str_from(pb->refused);
        message.cluster = pb->cluster;
        break;
    case FROM_CONTROLLER_HEARTBEAT_ACK:
        message.sent_ns = pb->heartbeat_ack;
        message.clock_ns = pb->clock_ns;
        rc = read_grant(pb->grant, &message.grant, error);
        break;
    case FROM_CONTROLLER_REPORTS_ACK:
        message.number = pb->reports_ack;
        break;
    case FROM_CONTROLLER_START:
        rc = codec_read_launch(arena, pb->start, &message.start, error);
        break;
    case FROM_CONTROLLER_STOP:
        rc = read_stop(pb->stop, &message.stop, error);
        break;
    case FROM_CONTROLLER_NOTICE:
        rc = read_notice(pb->notice, &message.notice, error);
        break;
    case FROM_CONTROLLER_REJOIN:
        rc = codec_read_rejoin(pb->rejoin, &message.rejoin, error);
        break;
    case FROM_CONTROLLER_FORGET:
        message.task = pb->forget;
        break;
    case FROM_CONTROLLER_LOG_OPEN:
        rc = read_log_open(pb->log_open, &message.log_open, error);
        break;
    case FROM_CONTROLLER_LOG_CLOSE:
        message.number = pb->log_close;
        break;
    case FROM_CONTROLLER_EXEC_OPEN:
        rc = codec_read_exec_open(arena, pb->exec_open, &message.exec_open, error);
        break;
    case FROM_CONTROLLER_EXEC_INPUT:
        rc = codec_read_exec_data(pb->exec_input, &message.exec_data, error);
        break;
    case FROM_CONTROLLER_EXEC_RESIZE:
        rc = codec_read_exec_resize(pb->exec_resize, &message.exec_resize, error);
        break;
    case FROM_CONTROLLER_EXEC_CLOSE:
        message.number = pb->exec_close;
        break;
    case FROM_CONTROLLER_RANK_TABLE:
        message.rank_table = (struct packed_rank_table){
            pb->rank_table->number,
            {(const char *)pb->rank_table->rank_table.data, pb->rank_table->rank_table.len}};
        break;
    default:
        rc = read_errand(pb, &message, error);
    }
    if (rc == 0)
        *ret_message = message;
    return rc;
}
