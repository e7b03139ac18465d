/* op_name.c - the meaning of an operation's name in text: a kind, and, for names that are mapped to another
 * operation (ops.h), the attributes that they imply.
 */
#include "flow/ir/parse.h"

/* The chlo operations that become custom calls, with the names under which JAX exports them. */
static const struct {
    const char *name, *target;
} chlo_calls[] = {
    {"acos", "mhlo.acos"},
    {"acosh", "mhlo.acosh"},
    {"asin", "mhlo.asin"},
    {"asinh", "mhlo.asinh"},
    {"atan", "mhlo.atan"},
    {"atanh", "mhlo.atanh"},
    {"bessel_i1e", "mhlo.bessel_i1e"},
    {"conj", "mhlo.conj"},
    {"cosh", "mhlo.cosh"},
    {"digamma", "mhlo.digamma"},
    {"erf", "mhlo.erf"},
    {"erf_inv", "mhlo.erf_inv"},
    {"erfc", "mhlo.erfc"},
    {"is_inf", "mhlo.is_inf"},
    {"is_neg_inf", "mhlo.is_neg_inf"},
    {"is_pos_inf", "mhlo.is_pos_inf"},
    {"lgamma", "mhlo.lgamma"},
    {"mulhi", "mhlo.mulhi"},
    {"next_after", "mhlo.next_after"},
    {"polygamma", "mhlo.polygamma"},
    {"sinh", "mhlo.sinh"},
    {"square", "mhlo.square"},
    {"top_k", "mhlo.topk"},
    {"zeta", "mhlo.zeta"},
};

/* Names that the table does not contain. */
static const struct {
    const char *name;
    enum ir_op_kind kind;
} other_names[] = {
    {"call", IR_OP_CALL},
    {"func.call", IR_OP_CALL},
    {"stablehlo.composite", IR_OP_CALL},
    {"return", IR_OP_RETURN},
    {"func.return", IR_OP_RETURN},
    {"stablehlo.dot", IR_OP_DOT_GENERAL},
    {"stablehlo.broadcast", IR_OP_BROADCAST_IN_DIM},
    {"stablehlo.create_token", IR_OP_AFTER_ALL},
    {"check.expect_eq", IR_OP_EXPECT_EQ},
    {"check.expect_close", IR_OP_EXPECT_CLOSE},
    {"check.expect_almost_eq", IR_OP_EXPECT_ALMOST_EQ},
    {"check.expect_eq_const", IR_OP_EXPECT_EQ},
    {"check.expect_close_const", IR_OP_EXPECT_CLOSE},
    {"check.expect_almost_eq_const", IR_OP_EXPECT_ALMOST_EQ},
    {"interpreter.run_parallel", IR_OP_RUN_PARALLEL},
    {"chlo.tan", IR_OP_TAN},
};

static bool draft_name_stablehlo(struct draft *draft, struct str name)
{
    for (enum ir_op_kind kind = 0; kind < IR_OP_KINDS; kind++) {
        if (str_is(name, ir_op_name(kind))) {
            draft->kind = kind;
            return true;
        }
    }
    return false;
}

static bool draft_name_chlo(struct parser *parser, struct draft *draft, struct str name)
{
    for (size_t i = 0; i < sizeof chlo_calls / sizeof *chlo_calls; i++) {
        if (!str_is(name, chlo_calls[i].name))
            continue;
        struct attribute *target = draft_attribute(parser, draft, "call_target_name");
        target->kind = ATTRIBUTE_STRING;
        target->text = str_from(chlo_calls[i].target);
        draft->kind = IR_OP_CUSTOM_CALL;
        return true;
    }
    return false;
}

bool draft_name(struct parser *parser, struct draft *draft, struct str name)
{
    struct str dialect, rest = name;
    draft->name = name;
    for (size_t i = 0; i < sizeof other_names / sizeof *other_names; i++) {
        if (str_is(name, other_names[i].name)) {
            draft->kind = other_names[i].kind;
            return true;
        }
    }
    if (str_is(name, "sdy.sharding_constraint")) {
        draft->is_alias = true;
        return true;
    }
    if (!str_cut(name, '.', &dialect, &rest))
        return parse_expected(parser, "an operation");
    if ((str_is(dialect, "stablehlo") && draft_name_stablehlo(draft, rest)) ||
        (str_is(dialect, "chlo") && draft_name_chlo(parser, draft, rest)))
        return true;
    return parse_fail(parser, ERROR_UNSUPPORTED, draft->place, "operation " STR_FORMAT " is not supported",
                      STR_ARG(name));
}
