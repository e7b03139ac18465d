/* The UCX worker shared by the connections of a thread. */
#include "flow/wire/ucx.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/units.h"
#include "flow/wire/clock.h"

enum { HUB_ROUNDS_MAX = 64 };
#define HUB_LET_GO_NS (5 * NS_PER_SECOND) /* how long a peer may take to read the last bytes */
#define HUB_FREE_NS   (2 * NS_PER_SECOND)

/* --- outgoing messages */

/* A message in flight. */
struct ucx_sending {
    struct ucx_carrier *carrier;
    struct tensor *tensor; /* NULL: the bytes are a copy */
    struct ucx_header header;
    char data[];
};

static void carrier_break(struct ucx_carrier *carrier)
{
    carrier->broken = true;
    hub_wake(carrier->hub, carrier);
}

static void sending_ended(struct ucx_sending *sending, ucs_status_t status)
{
    struct ucx_carrier *carrier = sending->carrier;
    carrier->running--;
    if (status != UCS_OK)
        carrier_break(carrier);
    tensor_unref(sending->tensor);
    free(sending);
}

static void hub_sent(void *request, ucs_status_t status, void *context)
{
    ucx_api.ucp_request_free(request);
    sending_ended(context, status);
}

static struct ucx_sending *sending_new(struct ucx_carrier *carrier, enum ucx_kind kind, uint64_t at,
                                       size_t copied)
{
    struct ucx_sending *sending = malloc(sizeof *sending + copied);
    CHECK(sending);
    sending->carrier = carrier;
    sending->tensor = NULL;
    sending->header = (struct ucx_header){.to = carrier->peer.number, .kind = kind, .at = at};
    memcpy(sending->header.key, carrier->peer.key, UCX_KEY_BYTES);
    return sending;
}

/* Passes a message to UCX, with flags of ucp_send_am_flags. */
static void sending_begin(struct ucx_sending *sending, const void *data, size_t len, uint32_t flags)
{
    struct ucx_carrier *carrier = sending->carrier;
    ucp_request_param_t how = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                               UCP_OP_ATTR_FIELD_FLAGS,
                               .flags = flags,
                               .cb.send = hub_sent,
                               .user_data = sending};
    carrier->running++;
    if (!carrier->endpoint) {
        sending_ended(sending, UCS_ERR_CANCELED);
        return;
    }
    ucs_status_ptr_t request = ucx_api.ucp_am_send_nbx(carrier->endpoint, UCX_MESSAGE, &sending->header,
                                                       sizeof sending->header, data, len, &how);
    if (!UCS_PTR_IS_PTR(request))
        sending_ended(sending, UCS_PTR_STATUS(request));
}

void hub_send(struct ucx_carrier *carrier, enum ucx_kind kind, uint64_t at, const void *data, size_t len)
{
    struct ucx_sending *sending = sending_new(carrier, kind, at, len);
    if (len > 0)
        memcpy(sending->data, data, len);
    sending_begin(sending, sending->data, len, UCP_AM_SEND_FLAG_EAGER);
}

void hub_send_tensor(struct ucx_carrier *carrier, uint64_t at, struct tensor *tensor, size_t from, size_t len)
{
    struct ucx_sending *sending = sending_new(carrier, UCX_DATA, at, 0);
    sending->tensor = tensor_ref(tensor);
    sending_begin(sending, (const char *)tensor->data + from, len, UCP_AM_SEND_FLAG_RNDV);
}

/* --- incoming messages */

/* Bytes that are being fetched from the sender's memory. */
struct ucx_fetching {
    struct ucx_carrier *carrier;
    struct stream_piece *piece;
};

static void fetching_ended(struct ucx_fetching *fetching, ucs_status_t status)
{
    struct ucx_carrier *carrier = fetching->carrier;
    carrier->running--;
    if (status == UCS_OK) {
        fetching->piece->whole = true;
        hub_wake(carrier->hub, carrier);
    } else {
        carrier_break(carrier);
    }
    mem_free(fetching);
}

static void hub_fetched(void *request, ucs_status_t status, size_t len, void *context)
{
    ucx_api.ucp_request_free(request);
    fetching_ended(context, status);
}

static void carrier_fetch(struct ucx_carrier *carrier, struct stream_piece *piece, void *descriptor)
{
    struct ucx_fetching *fetching = mem_alloc(sizeof *fetching);
    *fetching = (struct ucx_fetching){carrier, piece};
    ucp_request_param_t how = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
                               .cb.recv_am = hub_fetched,
                               .user_data = fetching};
    carrier->running++;
    ucs_status_ptr_t request =
        ucx_api.ucp_am_recv_data_nbx(carrier->hub->worker, descriptor, piece->data, piece->len, &how);
    if (!UCS_PTR_IS_PTR(request))
        fetching_ended(fetching, UCS_PTR_STATUS(request));
}

/* Returns the carrier that a message names, or NULL if it lacks the carrier's key; such a message is
 * dropped. */
static struct ucx_carrier *hub_find(const struct wire_hub *hub, const struct ucx_header *header)
{
    struct ucx_carrier *carrier = u64_map_get(&hub->by_number, header->to);
    uint8_t differs = 0;
    for (int i = 0; carrier && i < UCX_KEY_BYTES; i++)
        differs |= header->key[i] ^ carrier->own.key[i];
    return carrier && !differs && carrier->wire ? carrier : NULL;
}

/* Handler of UCX for one message. */
static ucs_status_t hub_took(void *context, const void *header_bytes, size_t header_len, void *data,
                             size_t len, const ucp_am_recv_param_t *how)
{
    struct ucx_header header;
    if (header_len != sizeof header)
        return UCS_OK;
    memcpy(&header, header_bytes, sizeof header);
    struct ucx_carrier *carrier = hub_find(context, &header);
    bool is_remote = how->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV, sound = false;
    if (!carrier)
        return UCS_OK;
    if (header.kind == UCX_CREDIT) {
        sound = !is_remote && len == 0 && stream_credit(&carrier->stream, header.at);
    } else if (header.kind == UCX_DATA && is_remote) {
        struct stream_piece *piece = stream_piece(&carrier->stream, header.at, len);
        if (piece) {
            carrier_fetch(carrier, piece, data);
            return UCS_INPROGRESS;
        }
    } else if (header.kind == UCX_DATA) {
        sound = stream_take(&carrier->stream, header.at, data, len);
    }
    if (sound)
        hub_wake(carrier->hub, carrier);
    else
        carrier_break(carrier);
    return UCS_OK;
}

/* --- carriers */

void hub_add(struct wire_hub *hub, struct ucx_carrier *carrier)
{
    carrier->own = (struct ucx_greeting){.version = UCX_VERSION, .number = ++hub->numbers};
    CHECK(getrandom(carrier->own.key, UCX_KEY_BYTES, 0) == UCX_KEY_BYTES);
    u64_map_put(&hub->by_number, carrier->own.number, carrier);
    vec_push(&hub->carriers, carrier);
}

void hub_wake(struct wire_hub *hub, struct ucx_carrier *carrier)
{
    if (carrier->ready || !carrier->wire)
        return;
    carrier->ready = true;
    vec_push(&hub->ready, carrier);
}

void hub_settle(struct wire_hub *hub, struct ucx_carrier *carrier)
{
    for (size_t i = 0; carrier->ready && i < hub->ready.len; i++)
        if (hub->ready.items[i] == carrier) {
            vec_remove(&hub->ready, i);
            carrier->ready = false;
        }
}

struct wire *wire_hub_next(struct wire_hub *hub)
{
    if (hub->ready.len == 0)
        return NULL;
    struct ucx_carrier *carrier = hub->ready.items[0];
    vec_remove(&hub->ready, 0);
    carrier->ready = false;
    return carrier->wire;
}

/* Handler of UCX for a peer that cannot be reached any more. */
static void hub_lost(void *context, ucp_ep_h endpoint, ucs_status_t status)
{
    carrier_break(context);
}

bool hub_reach(struct wire_hub *hub, struct ucx_carrier *carrier, struct str address)
{
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                                            UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                                            UCP_EP_PARAM_FIELD_ERR_HANDLER,
                              .address = (const ucp_address_t *)address.data,
                              .err_mode = UCP_ERR_HANDLING_MODE_PEER,
                              .err_handler = {hub_lost, carrier}};
    return ucx_api.ucp_ep_create(hub->worker, &params, &carrier->endpoint) == UCS_OK;
}

static void hub_closed(void *request, ucs_status_t status, void *context)
{
    struct ucx_carrier *carrier = context;
    ucx_api.ucp_request_free(request);
    carrier->running--;
}

/* Ends the endpoint at once, with its operations in flight. */
static void carrier_hang_up(struct ucx_carrier *carrier)
{
    ucp_request_param_t how = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                               UCP_OP_ATTR_FIELD_FLAGS,
                               .flags = UCP_EP_CLOSE_FLAG_FORCE,
                               .cb.send = hub_closed,
                               .user_data = carrier};
    if (!carrier->endpoint)
        return;
    ucp_ep_h endpoint = carrier->endpoint;
    carrier->endpoint = NULL;
    carrier->running++;
    if (!UCS_PTR_IS_PTR(ucx_api.ucp_ep_close_nbx(endpoint, &how)))
        carrier->running--;
}

/* Whether the peer of a closed carrier has read all that it will read. */
static bool carrier_is_over(struct ucx_carrier *carrier)
{
    return carrier->broken || !carrier->writes || carrier->ended || !carrier_hear(carrier) ||
           carrier->ended || flow_now_ns() - carrier->closed_ns > HUB_LET_GO_NS;
}

/* Ends closed carriers whose peers are done, and frees those that UCX no longer refers to. */
static void hub_bury(struct wire_hub *hub)
{
    for (size_t i = 0; i < hub->carriers.len; i++) {
        struct ucx_carrier *carrier = hub->carriers.items[i];
        if (carrier->wire)
            continue;
        if (carrier->fd >= 0 && carrier_is_over(carrier)) {
            close(carrier->fd);
            carrier->fd = -1;
            carrier_hang_up(carrier);
        }
        if (carrier->fd >= 0 || carrier->running > 0)
            continue;
        vec_remove(&hub->carriers, i);
        i--;
        u64_map_remove(&hub->by_number, carrier->own.number);
        stream_done(&carrier->stream);
        mem_free(carrier);
    }
}

void hub_let_go(struct wire_hub *hub, struct ucx_carrier *carrier)
{
    hub_settle(hub, carrier);
    carrier->wire = NULL;
    carrier->closed_ns = flow_now_ns();
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(hub->fd, EPOLL_CTL_ADD, carrier->fd, &event);
    hub_bury(hub);
}

/* --- the hub */

/* Whether this machine has RDMA hardware that its kernel supports. */
static bool hub_has_rdma(void)
{
    DIR *folder = opendir("/sys/class/infiniband");
    bool found = false;
    struct dirent *entry;
    while (folder && !found && (entry = readdir(folder)))
        found = entry->d_name[0] != '.';
    if (folder)
        closedir(folder);
    return found;
}

static ucs_status_t hub_init_context(struct wire_hub *hub)
{
    ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                           .features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP};
    ucp_config_t *config;
    ucs_status_t status = ucx_api.ucp_config_read(NULL, NULL, &config);
    if (status != UCS_OK)
        return status;
    status = ucx_api.ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &hub->context);
    ucx_api.ucp_config_release(config);
    return status;
}

static ucs_status_t hub_init_worker(struct wire_hub *hub)
{
    ucp_worker_params_t params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                  .thread_mode = UCS_THREAD_MODE_SERIALIZED};
    ucp_am_handler_param_t handler = {.field_mask =
                                          UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                                          UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG,
                                      .id = UCX_MESSAGE,
                                      .flags = UCP_AM_FLAG_WHOLE_MSG,
                                      .cb = hub_took,
                                      .arg = hub};
    ucs_status_t status = ucx_api.ucp_worker_create(hub->context, &params, &hub->worker);
    if (status == UCS_OK)
        status = ucx_api.ucp_worker_set_am_recv_handler(hub->worker, &handler);
    if (status == UCS_OK)
        status = ucx_api.ucp_worker_get_address(hub->worker, &hub->address, &hub->address_len);
    if (status == UCS_OK)
        status = ucx_api.ucp_worker_get_efd(hub->worker, &hub->worker_fd);
    return status;
}

/* Frees the parts of a hub that exist. The hub has no carriers. */
static void hub_done(struct wire_hub *hub)
{
    if (hub->address)
        ucx_api.ucp_worker_release_address(hub->worker, hub->address);
    if (hub->worker)
        ucx_api.ucp_worker_destroy(hub->worker);
    if (hub->context)
        ucx_api.ucp_cleanup(hub->context);
    if (hub->fd >= 0)
        close(hub->fd);
    u64_map_done(&hub->by_number);
    vec_done(&hub->carriers);
    vec_done(&hub->ready);
    mem_free(hub);
}

static int hub_make(struct wire_hub **ret_hub, struct error *error)
{
    int rc = ucx_api_load(error);
    if (rc < 0)
        return rc;
    struct wire_hub *hub = mem_alloc(sizeof *hub);
    hub->fd = -1;
    ucs_status_t status = hub_init_context(hub);
    if (status == UCS_OK)
        status = hub_init_worker(hub);
    if (status != UCS_OK) {
        rc = error_set(error, ERROR_IO, "starting UCX: %s", ucx_api.ucs_status_string(status));
    } else if (hub->address_len > WIRE_STEP_MAX - sizeof(struct ucx_greeting)) {
        rc = error_set(error, ERROR_LIMIT,
                       "UCX has an address of %zu bytes here, more than %zu: name fewer devices in "
                       "UCX_NET_DEVICES",
                       hub->address_len, WIRE_STEP_MAX - sizeof(struct ucx_greeting));
    } else {
        struct epoll_event event = {.events = EPOLLIN};
        hub->fd = epoll_create1(EPOLL_CLOEXEC);
        if (hub->fd < 0 || epoll_ctl(hub->fd, EPOLL_CTL_ADD, hub->worker_fd, &event) < 0)
            rc = error_set_errno(error, errno, "watching UCX");
    }
    if (rc < 0)
        hub_done(hub);
    else
        *ret_hub = hub;
    return rc;
}

int wire_hub_new(enum wire_transport transport, struct wire_hub **ret_hub, struct error *error)
{
    *ret_hub = NULL;
    if (transport == WIRE_BY_SOCKET || (transport == WIRE_BY_AUTO && !hub_has_rdma()))
        return 0;
    int rc = hub_make(ret_hub, error);
    if (rc == 0)
        (*ret_hub)->hosts_alone = transport == WIRE_BY_AUTO;
    return transport == WIRE_BY_AUTO ? 0 : rc;
}

void wire_hub_free(struct wire_hub *hub)
{
    if (!hub)
        return;
    int64_t end_ns = flow_now_ns() + HUB_FREE_NS;
    while (hub->carriers.len > 0 && flow_now_ns() < end_ns) {
        struct epoll_event event;
        if (wire_hub_turn(hub) && hub->carriers.len > 0)
            epoll_wait(hub->fd, &event, 1, 100);
    }
    for (size_t i = 0; i < hub->carriers.len; i++) { /* their peers do not read */
        CHECK(!hub->carriers.items[i]->wire);
        hub->carriers.items[i]->broken = true;
    }
    while (hub->carriers.len > 0 && flow_now_ns() < end_ns + HUB_FREE_NS)
        wire_hub_turn(hub);
    hub_done(hub);
}

int wire_hub_fd(const struct wire_hub *hub)
{
    return hub->fd;
}

bool wire_hub_turn(struct wire_hub *hub)
{
    ucs_status_t armed = UCS_ERR_BUSY;
    hub_bury(hub);
    for (int i = 0; i < HUB_ROUNDS_MAX && armed == UCS_ERR_BUSY; i++) {
        for (int k = 0; k < HUB_ROUNDS_MAX && ucx_api.ucp_worker_progress(hub->worker) != 0; k++)
            continue;
        armed = ucx_api.ucp_worker_arm(hub->worker);
    }
    return armed == UCS_OK && hub->ready.len == 0;
}
