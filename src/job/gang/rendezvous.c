#include "job/gang/rendezvous.h"

#include <assert.h>
#include <string.h>

#include "job/link/wire.h"

size_t rendezvous_size(const struct rendezvous_message *message)
{
    return RENDEZVOUS_HEADER_SIZE + RENDEZVOUS_FIXED_SIZE + (size_t)message->key_len + message->value_len +
           RENDEZVOUS_TAG_SIZE;
}

void rendezvous_encode(const struct rendezvous_message *message, uint8_t *out)
{
    struct jobwire_writer writer = {.data = out, .cap = rendezvous_size(message)};
    static const uint8_t no_tag[RENDEZVOUS_TAG_SIZE];
    size_t body_len = writer.cap - RENDEZVOUS_HEADER_SIZE - RENDEZVOUS_TAG_SIZE;
    assert(message->key_len <= PHX_KEY_MAX && body_len <= RENDEZVOUS_BODY_MAX);
    jobwire_put(&writer, body_len, 4);
    jobwire_put(&writer, message->type, 2);
    jobwire_put(&writer, RENDEZVOUS_VERSION, 2);
    jobwire_put(&writer, message->rank, 4);
    jobwire_put(&writer, message->world, 4);
    jobwire_put(&writer, message->attempt, 4);
    jobwire_put(&writer, message->status, 4);
    jobwire_put(&writer, message->number, 8);
    jobwire_put(&writer, message->key_len, 4);
    jobwire_put(&writer, message->value_len, 4);
    jobwire_put_bytes(&writer, message->key, message->key_len);
    jobwire_put_bytes(&writer, message->value, message->value_len);
    jobwire_put_bytes(&writer, no_tag, sizeof no_tag);
    assert(!writer.full && writer.len == writer.cap);
}

int rendezvous_decode(const uint8_t *data, size_t len, size_t body_max,
                      struct rendezvous_message *ret_message, size_t *ret_used)
{
    struct jobwire_reader reader = {.data = data, .len = len};
    uint64_t body_len = jobwire_get(&reader, 4);
    struct rendezvous_message message = {.type = (uint16_t)jobwire_get(&reader, 2)};
    uint64_t version = jobwire_get(&reader, 2);
    if (reader.broken)
        return 0;
    if (version != RENDEZVOUS_VERSION || body_len < RENDEZVOUS_FIXED_SIZE || body_len > body_max)
        return -1;
    if (len - RENDEZVOUS_HEADER_SIZE < body_len + RENDEZVOUS_TAG_SIZE)
        return 0;
    message.rank = (uint32_t)jobwire_get(&reader, 4);
    message.world = (uint32_t)jobwire_get(&reader, 4);
    message.attempt = (uint32_t)jobwire_get(&reader, 4);
    message.status = (uint32_t)jobwire_get(&reader, 4);
    message.number = jobwire_get(&reader, 8);
    message.key_len = (uint32_t)jobwire_get(&reader, 4);
    message.value_len = (uint32_t)jobwire_get(&reader, 4);
    if (message.key_len > PHX_KEY_MAX ||
        (uint64_t)message.key_len + message.value_len != body_len - RENDEZVOUS_FIXED_SIZE)
        return -1;
    message.key = jobwire_get_bytes(&reader, message.key_len);
    message.value = jobwire_get_bytes(&reader, message.value_len);
    *ret_message = message;
    *ret_used = RENDEZVOUS_HEADER_SIZE + (size_t)body_len + RENDEZVOUS_TAG_SIZE;
    return 1;
}

void rendezvous_seal(struct seal *seal, uint8_t *frame, size_t size)
{
    seal_tag(seal, frame, size - RENDEZVOUS_TAG_SIZE, frame + size - RENDEZVOUS_TAG_SIZE);
}

bool rendezvous_check(struct seal *seal, const uint8_t *frame, size_t size)
{
    return seal_check(seal, frame, size - RENDEZVOUS_TAG_SIZE, frame + size - RENDEZVOUS_TAG_SIZE);
}

size_t rendezvous_put_name(const struct rendezvous_name *name, uint8_t *out)
{
    struct jobwire_writer writer = {.data = out, .cap = RENDEZVOUS_NAME_SIZE_MAX};
    size_t name_len = strlen(name->name), address_len = strlen(name->address);
    jobwire_put(&writer, name_len, 1);
    jobwire_put_bytes(&writer, name->name, name_len);
    jobwire_put(&writer, address_len, 1);
    jobwire_put_bytes(&writer, name->address, address_len);
    jobwire_put(&writer, name->port, 2);
    jobwire_put(&writer, name->machine, 8);
    jobwire_put(&writer, name->rack, 8);
    assert(!writer.full);
    return writer.len;
}

static void get_text(struct jobwire_reader *reader, char *text, size_t cap)
{
    size_t len = (size_t)jobwire_get(reader, 1);
    const uint8_t *bytes = jobwire_get_bytes(reader, len);
    if (bytes == NULL || len >= cap || memchr(bytes, '\0', len) != NULL) {
        reader->broken = true;
        return;
    }
    memcpy(text, bytes, len);
    text[len] = '\0';
}

size_t rendezvous_get_name(const uint8_t *data, size_t len, struct rendezvous_name *ret_name)
{
    struct jobwire_reader reader = {.data = data, .len = len};
    struct rendezvous_name name;
    get_text(&reader, name.name, sizeof name.name);
    get_text(&reader, name.address, sizeof name.address);
    name.port = (uint16_t)jobwire_get(&reader, 2);
    name.machine = jobwire_get(&reader, 8);
    name.rack = jobwire_get(&reader, 8);
    if (reader.broken)
        return 0;
    *ret_name = name;
    return reader.pos;
}
