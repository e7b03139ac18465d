/* table_default.h - the default rows of the fault table, with which table.c begins. Private to health/. */
#ifndef PHX_CORE_HEALTH_TABLE_DEFAULT_H
#define PHX_CORE_HEALTH_TABLE_DEFAULT_H

#include "base/units.h"
#include "core/health/table.h"

extern const struct fault_rule fault_default_rules[];
extern const size_t fault_default_rule_count;
extern const struct fault_relation fault_default_relations[];
extern const size_t fault_default_relation_count;

#endif
