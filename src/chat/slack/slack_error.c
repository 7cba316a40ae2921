/* slack_error.c - what Slack's error codes mean for us; a code that is not here is permanent. */
#include "slack_api.h"

static const struct {
    const char *code;
    enum slack_class class;
} codes[] = {
    { "ratelimited", SLACK_WAIT },
    { "rate_limited", SLACK_WAIT },
    { "message_limit_exceeded", SLACK_WAIT },
    { "internal_error", SLACK_TRANSIENT },
    { "fatal_error", SLACK_TRANSIENT },
    { "service_unavailable", SLACK_TRANSIENT },
    { "request_timeout", SLACK_TRANSIENT },
    { "team_added_to_org", SLACK_TRANSIENT },
    { "external_channel_migrating", SLACK_TRANSIENT },
    { "update_failed", SLACK_TRANSIENT },
    { "streaming_state_conflict", SLACK_TRANSIENT },
    { "invalid_blocks", SLACK_PAYLOAD },
    { "invalid_blocks_format", SLACK_PAYLOAD },
    { "msg_blocks_too_long", SLACK_PAYLOAD },
    { "msg_blocks_too_many", SLACK_PAYLOAD },
    { "msg_too_long", SLACK_PAYLOAD },
    { "no_text", SLACK_PAYLOAD },
    { "invalid_chunks", SLACK_PAYLOAD },
    { "markdown_text_conflict", SLACK_PAYLOAD },
    { "too_many_attachments", SLACK_PAYLOAD },
    { "metadata_too_large", SLACK_PAYLOAD },
    { "invalid_arguments", SLACK_PAYLOAD },
    { "invalid_arg_name", SLACK_PAYLOAD },
    { "block_mismatch", SLACK_PAYLOAD },
    { "invalid_auth", SLACK_AUTH },
    { "not_authed", SLACK_AUTH },
    { "account_inactive", SLACK_AUTH },
    { "token_revoked", SLACK_AUTH },
    { "token_expired", SLACK_AUTH },
    { "missing_scope", SLACK_AUTH },
    { "not_allowed_token_type", SLACK_AUTH },
    { "no_permission", SLACK_AUTH },
    { "team_access_not_granted", SLACK_AUTH },
    { "org_login_required", SLACK_AUTH },
    { "two_factor_setup_required", SLACK_AUTH },
    { "team_disabled", SLACK_AUTH },
    { "user_removed_from_team", SLACK_AUTH },
    { "unknown_method", SLACK_FEATURE },
    { "feature_not_enabled", SLACK_FEATURE },
    { "feature_disabled", SLACK_FEATURE },
    { "not_agent_app", SLACK_FEATURE },
    { "not_authorized", SLACK_FEATURE },
    { "method_deprecated", SLACK_FEATURE },
    { "channel_type_not_supported", SLACK_FEATURE },
    { "already_reacted", SLACK_BENIGN },
    { "no_reaction", SLACK_BENIGN },
};

enum slack_class slack_error_class(const char *code)
{
    for (size_t i = 0; i < countof(codes); i++)
        if (strcmp(codes[i].code, code) == 0)
            return codes[i].class;
    return SLACK_REFUSED;
}

/* About one thread or channel: another one may well have what is missing here. */
static bool is_about_place(const char *code)
{
    static const char *const places[] = {
        "cannot_reply_to_message", "channel_not_found", "invalid_thread_ts", "is_archived", "is_inactive",
        "message_not_found",       "not_in_channel",    "thread_not_found"
    };
    for (size_t i = 0; i < countof(places); i++)
        if (strcmp(places[i], code) == 0)
            return true;
    return false;
}

bool slack_lacks_feature(const struct slack_reply *r)
{
    const enum slack_class class = r->error ? slack_error_class(r->error) : SLACK_TRANSIENT;
    return class == SLACK_FEATURE || class == SLACK_AUTH || (class == SLACK_REFUSED && !is_about_place(r->error));
}
