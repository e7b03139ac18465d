/* schema_health.c - phalanx.dev/v1: Faults and the FaultTable that judges them (core/health/). */
#include "core/spec/schema_stored.h"

enum { CODES_MAX = 4096, RULES_MAX = 256 };

#define LEVEL_NAMES                                                                                          \
    "NotHandle,SubHealth,RestartRequest,RestartBusiness,PreSeparate,FreeReset,Reset,Separate,"               \
    "ManuallySeparate"

/* clang-format off */
static const struct schema fault_code = {"FaultCode", TABLE(
    STRING("code", REQUIRED), STRING("level", REQUIRED, ENUM(LEVEL_NAMES)),
    STRING("domain", ENUM("unknown,user,software,network,hardware"), DEFAULT("unknown")),
    STRING("severity", ENUM("high,low"), DEFAULT("low")), STRING("action"))};
static const struct schema fault_frequency = {"FaultFrequency", TABLE(
    STRING_SET("codes", REQUIRED, AT_MOST(CODES_MAX)), INT32("times", REQUIRED), STRING("window", REQUIRED),
    STRING("level", ENUM(LEVEL_NAMES), DEFAULT("ManuallySeparate")), STRING("release"))};
static const struct schema fault_duration = {"FaultDuration", TABLE(
    STRING_SET("codes", REQUIRED, AT_MOST(CODES_MAX)), STRING("after", REQUIRED), STRING("recover"),
    STRING("level", ENUM(LEVEL_NAMES), DEFAULT("PreSeparate")))};
static const struct schema fault_relation = {"FaultRelation", TABLE(
    STRING("first", REQUIRED), STRING("then", REQUIRED), STRING("within", DEFAULT("300s")),
    STRING("level", ENUM(LEVEL_NAMES), DEFAULT("Separate")))};
static const struct schema fault_unknown = {"UnknownFaults", TABLE(
    STRING("notice", ENUM(LEVEL_NAMES)), STRING("minor", ENUM(LEVEL_NAMES)),
    STRING("major", ENUM(LEVEL_NAMES)), STRING("critical", ENUM(LEVEL_NAMES)))};
static const struct schema fault_breaker = {"FaultBreaker", TABLE(
    INT32("perHour", DEFAULT("10")), INT32("total", DEFAULT("50")))};
static const struct schema fault_sender = {"FaultSender", TABLE(
    STRING("name", REQUIRED), STRING_SET("users", AT_MOST(RULES_MAX)),
    STRING_SET("codes", AT_MOST(CODES_MAX)))};
static const struct schema fault_public = {"PublicFaults", TABLE(
    LIST("senders", fault_sender, AT_MOST(RULES_MAX)), INT32("perSecond"), INT32("burst"), INT32("perSender"),
    INT32("total"))};
static const struct schema fault_table_spec = {"FaultTableSpec", TABLE(
    LIST("codes", fault_code, AT_MOST(CODES_MAX)), LIST("frequency", fault_frequency, AT_MOST(RULES_MAX)),
    LIST("duration", fault_duration, AT_MOST(RULES_MAX)),
    LIST("relations", fault_relation, AT_MOST(RULES_MAX)),
    OBJECT("public", fault_public), OBJECT("unknown", fault_unknown),
    OBJECT("breaker", fault_breaker, DEFAULT("{}")))};
const struct schema schema_fault_table = {"FaultTable", TABLE(
    WHOLE, OBJECT("spec", fault_table_spec, DEFAULT("{}")), ANYTHING("status"))};

static const struct schema fault_spec = {"FaultSpec", TABLE(
    STRING("machine"), STRING("switch"), STRING("cube"), STRING("link"), STRING("code", REQUIRED),
    STRING("place"), INT32("chip"), STRING("assertion", ENUM("occur,recover,once")),
    STRING("severity", ENUM("notice,minor,major,critical")),
    STRING("evidence"), STRING("time"), STRING("sender"))};
static const struct schema fault_status = {"FaultStatus", TABLE(
    STRING("state", ENUM("Open,Closed")), STRING("level", ENUM(LEVEL_NAMES)),
    STRING("ownLevel", ENUM(LEVEL_NAMES)), STRING("raisedBy", ENUM("Frequency,Duration,Relation")),
    STRING("domain", ENUM("unknown,user,software,network,hardware")), STRING("severity", ENUM("high,low")),
    STRING("action", ENUM("Noted,Restarted,Held,Evicted,HeldBack")), STRING("remedy"), INT64("count"),
    STRING("firstSeen"), STRING("lastSeen"), STRING("closedAt"), STRING("evidence"),
    STRINGS("jobs"), BOOLEAN("software"), STRING("reportedBy"))};
const struct schema schema_fault = {"Fault", TABLE(
    WHOLE, OBJECT("spec", fault_spec), OBJECT("status", fault_status))};

/* The control plane writes the status of Repairs and Maintenances: core/repair/. */
static const struct schema repair_spec = {"RepairSpec", TABLE(
    STRING("machine"), STRING("place"), STRING("action"), STRING("reason"), BOOLEAN("now"), BOOLEAN("done"),
    BOOLEAN("qualify"))};
static const struct schema repair_attempt = {"RepairAttempt", TABLE(
    STRING("action"), STRING("outcome", ENUM("Running,Succeeded,Failed,TimedOut,Lost,Missing,Stopped")),
    INT32("exitCode"), STRING("startedAt"), STRING("endedAt"), STRING("output"))};
static const struct schema repair_change = {"RepairChange", TABLE(
    STRING("time"), STRING("state"), STRING("message"))};
static const struct schema repair_status = {"RepairStatus", TABLE(
    STRING("state", ENUM("Waiting,Resetting,Returning,Paused,Qualifying,Ticketed,Closed")),
    STRING("machine"), STRING("place"), STRING("origin", ENUM("Fault,Person,Maintenance")), STRING("action"),
    STRING("message"), STRINGS("faults"), STRING("openedAt"), STRING("closedAt"), STRING("watchedUntil"),
    LIST("attempts", repair_attempt), LIST("history", repair_change))};
const struct schema schema_repair = {"Repair", TABLE(
    WHOLE, OBJECT("spec", repair_spec, REQUIRED), OBJECT("status", repair_status))};

static const struct schema maintenance_spec = {"MaintenanceSpec", TABLE(
    STRINGS("machines"), OBJECT("selector", schema_label_selector), STRING("controller"), STRING("start"),
    STRING("end"), STRING("notice", DEFAULT("0s")), STRING("action", DEFAULT("drain")),
    BOOLEAN("qualify"), STRING("reason"))};
static const struct schema maintenance_status = {"MaintenanceStatus", TABLE(
    STRING("phase", ENUM("Pending,Draining,Active,Done")), INT32("machines"), STRING("until"),
    INT32("confirmed"), STRINGS("unconfirmed"))};
const struct schema schema_maintenance = {"Maintenance", TABLE(
    WHOLE, OBJECT("spec", maintenance_spec, REQUIRED), OBJECT("status", maintenance_status))};
/* clang-format on */
