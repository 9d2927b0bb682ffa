/*
 * Limits requests by key, exactly, for all workers together: limiters of tollgate in memory that they share. README.md
 * has the directives.
 *
 * The master places a region into the pages of an nginx zone before it forks workers; from then on nginx's allocator has
 * nothing left to give out there, and its mutex is not taken again. A request asks the region without a lock: a worker
 * killed inside of a call leaves nothing that had to be undone, or waited for.
 */

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include <tollgate/tollgate.h>


#define NGX_HTTP_TOLLGATE_CLOCK   TOLLGATE_CLOCK_MONOTONIC
#define NGX_HTTP_TOLLGATE_SECOND  UINT64_C(1000000000)
#define NGX_HTTP_TOLLGATE_MS      UINT64_C(1000000)

#define NGX_HTTP_TOLLGATE_WINDOW_MAX  ((UINT64_C(1) << 62) - 1)

/* The largest integer of a structured field (RFC 9651). */
#define NGX_HTTP_TOLLGATE_SF_MAX  UINT64_C(999999999999999)


typedef struct {
    ngx_str_t                   name;
    ngx_str_t                   file;      /* where the region lies, if not in a zone of nginx */
    tollgate_shm_config_t       region;    /* in a zone of nginx, keys: as many as it has room for */
    tollgate_config_t           limit;     /* rule_count 0: not told yet */
    ngx_str_t                   text;      /* the limit for people: 100 per 1s (log) */
    ngx_str_t                   policy;    /* the limit for clients: "one";q=100;w=1 */
    tollgate_shm_t             *shm;
    unsigned                    declared:1;
    unsigned                    used:1;
} ngx_http_tollgate_zone_t;


typedef struct {
    ngx_array_t                 zones;     /* of ngx_http_tollgate_zone_t * */
} ngx_http_tollgate_main_conf_t;


typedef struct {
    ngx_http_tollgate_zone_t   *zone;
    ngx_http_complex_value_t    key;
} ngx_http_tollgate_limit_t;


typedef struct {
    ngx_array_t                 limits;    /* of ngx_http_tollgate_limit_t */
    ngx_uint_t                  log_level;
    ngx_flag_t                  dry_run;
    ngx_flag_t                  fields;
} ngx_http_tollgate_loc_conf_t;


typedef struct {
    ngx_str_t                   name;
    ngx_str_t                  *value;     /* what a directive says; without it data is NULL */
} ngx_http_tollgate_param_t;


/* What a directive says of a limit. */
typedef struct {
    ngx_str_t                   rate;
    ngx_str_t                   limit;
    ngx_str_t                   window;
    ngx_str_t                   burst;
    ngx_str_t                   algorithm;
} ngx_http_tollgate_terms_t;


/* A limit that a request falls under, and as whom. */
typedef struct {
    ngx_http_tollgate_zone_t   *zone;
    ngx_str_t                   key;
} ngx_http_tollgate_charge_t;


typedef enum {
    NGX_HTTP_TOLLGATE_PASSED = 1,
    NGX_HTTP_TOLLGATE_REJECTED,
    NGX_HTTP_TOLLGATE_REJECTED_DRY_RUN
} ngx_http_tollgate_status_e;


/* What was decided of a request. */
typedef struct {
    ngx_http_tollgate_status_e  status;
    ngx_http_tollgate_zone_t   *zone;      /* whose figures these are */
    tollgate_decision_t         decision;
    uint64_t                    asked;     /* the time of the call */
    ngx_str_t                   policies;
    unsigned                    fields:1;
} ngx_http_tollgate_ctx_t;


static ngx_int_t ngx_http_tollgate_handler(ngx_http_request_t *r);
static ngx_int_t ngx_http_tollgate_get_charges(ngx_http_request_t *r,
    ngx_array_t *limits, ngx_array_t *charges);
static ngx_int_t ngx_http_tollgate_ask(ngx_http_request_t *r, ngx_array_t *charges,
    ngx_flag_t takes, ngx_http_tollgate_ctx_t *ctx);
static ngx_int_t ngx_http_tollgate_join_policies(ngx_http_request_t *r,
    ngx_array_t *charges, ngx_str_t *policies);
static void ngx_http_tollgate_log(ngx_http_request_t *r, ngx_uint_t level,
    ngx_http_tollgate_ctx_t *ctx);
static ngx_int_t ngx_http_tollgate_header_filter(ngx_http_request_t *r);
static ngx_int_t ngx_http_tollgate_add_header(ngx_http_request_t *r,
    const char *name, size_t len, const char *fmt, ...);
static uint64_t ngx_http_tollgate_seconds(uint64_t span);
static ngx_int_t ngx_http_tollgate_status_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_tollgate_time_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_http_tollgate_ctx_t *ngx_http_tollgate_get_ctx(ngx_http_request_t *r);
static ngx_http_tollgate_ctx_t *ngx_http_tollgate_create_ctx(ngx_http_request_t *r);
static void ngx_http_tollgate_cleanup_ctx(void *data);

static ngx_int_t ngx_http_tollgate_init_zone(ngx_shm_zone_t *shm_zone, void *data);
static int ngx_http_tollgate_place(ngx_shm_zone_t *shm_zone,
    ngx_http_tollgate_zone_t *zone);
static uint64_t ngx_http_tollgate_fit(const tollgate_shm_config_t *region, size_t len);
static ngx_flag_t ngx_http_tollgate_is_resized(ngx_shm_zone_t *shm_zone);
static const char *ngx_http_tollgate_when_full(const ngx_http_tollgate_zone_t *zone);
static void ngx_http_tollgate_close(void *data);

static char *ngx_http_tollgate_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
static char *ngx_http_tollgate_zone_memory(ngx_conf_t *cf, ngx_http_tollgate_zone_t *zone,
    ngx_str_t *size, ngx_shm_zone_t **shm_zone);
static char *ngx_http_tollgate_zone_file(ngx_conf_t *cf, ngx_http_tollgate_zone_t *zone,
    ngx_str_t *keys, ngx_str_t *limiters, ngx_str_t *mode, ngx_shm_zone_t **shm_zone);
static char *ngx_http_tollgate(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
static char *ngx_http_tollgate_terms(ngx_conf_t *cf, ngx_http_tollgate_terms_t *terms,
    tollgate_config_t *limit);
static char *ngx_http_tollgate_rate(ngx_conf_t *cf, ngx_http_tollgate_terms_t *terms,
    tollgate_rule_t *rule);
static char *ngx_http_tollgate_set_limit(ngx_conf_t *cf, ngx_http_tollgate_zone_t *zone,
    const tollgate_config_t *limit);
static ngx_int_t ngx_http_tollgate_describe(ngx_conf_t *cf, const tollgate_config_t *limit,
    ngx_str_t *text);
static ngx_http_tollgate_zone_t *ngx_http_tollgate_get_zone(ngx_conf_t *cf,
    ngx_str_t *name);
static char *ngx_http_tollgate_params(ngx_conf_t *cf,
    const ngx_http_tollgate_param_t *params);
static ngx_int_t ngx_http_tollgate_number(const ngx_str_t *text, unsigned base,
    uint64_t *number);
static void *ngx_http_tollgate_create_main_conf(ngx_conf_t *cf);
static void *ngx_http_tollgate_create_loc_conf(ngx_conf_t *cf);
static char *ngx_http_tollgate_merge_loc_conf(ngx_conf_t *cf, void *parent,
    void *child);
static ngx_int_t ngx_http_tollgate_add_variables(ngx_conf_t *cf);
static ngx_int_t ngx_http_tollgate_init(ngx_conf_t *cf);


static const struct {
    const char                 *name;
    uint32_t                    number;
} ngx_http_tollgate_algorithms[] = {
    { "log", TOLLGATE_LOG },
    { "window", TOLLGATE_WINDOW },
    { "fixed", TOLLGATE_FIXED },
    { "twowin", TOLLGATE_TWO_WINDOW },
    { "gcra", TOLLGATE_GCRA },
    { NULL, 0 }
};


static ngx_conf_enum_t  ngx_http_tollgate_log_levels[] = {
    { ngx_string("info"), NGX_LOG_INFO },
    { ngx_string("notice"), NGX_LOG_NOTICE },
    { ngx_string("warn"), NGX_LOG_WARN },
    { ngx_string("error"), NGX_LOG_ERR },
    { ngx_null_string, 0 }
};


/* By ngx_http_tollgate_status_e. */
static ngx_str_t  ngx_http_tollgate_statuses[] = {
    ngx_null_string,
    ngx_string("PASSED"),
    ngx_string("REJECTED"),
    ngx_string("REJECTED_DRY_RUN")
};


static ngx_http_variable_t  ngx_http_tollgate_variables[] = {

    { ngx_string("tollgate_status"), NULL, ngx_http_tollgate_status_variable,
      0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    /* The times between which a request was recorded. */
    { ngx_string("tollgate_asked"), NULL, ngx_http_tollgate_time_variable,
      offsetof(ngx_http_tollgate_ctx_t, asked), NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("tollgate_judged"), NULL, ngx_http_tollgate_time_variable,
      offsetof(ngx_http_tollgate_ctx_t, decision.now_ns), NGX_HTTP_VAR_NOCACHEABLE, 0 },

    ngx_http_null_variable
};


static ngx_command_t  ngx_http_tollgate_commands[] = {

    { ngx_string("tollgate_zone"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_1MORE,
      ngx_http_tollgate_zone,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("tollgate"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_1MORE,
      ngx_http_tollgate,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("tollgate_log_level"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_enum_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_tollgate_loc_conf_t, log_level),
      &ngx_http_tollgate_log_levels },

    { ngx_string("tollgate_dry_run"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_tollgate_loc_conf_t, dry_run),
      NULL },

    { ngx_string("tollgate_fields"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_tollgate_loc_conf_t, fields),
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_tollgate_module_ctx = {
    ngx_http_tollgate_add_variables,       /* preconfiguration */
    ngx_http_tollgate_init,                /* postconfiguration */

    ngx_http_tollgate_create_main_conf,    /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    ngx_http_tollgate_create_loc_conf,     /* create location configuration */
    ngx_http_tollgate_merge_loc_conf       /* merge location configuration */
};


ngx_module_t  ngx_http_tollgate_module = {
    NGX_MODULE_V1,
    &ngx_http_tollgate_module_ctx,         /* module context */
    ngx_http_tollgate_commands,            /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    NULL,                                  /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static ngx_http_output_header_filter_pt  ngx_http_next_header_filter;


/* === a request === */

static ngx_int_t
ngx_http_tollgate_handler(ngx_http_request_t *r)
{
    ngx_int_t                      rc;
    ngx_array_t                    charges;
    ngx_http_tollgate_ctx_t       *ctx;
    ngx_http_tollgate_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_tollgate_module);

    /* A request is charged once, however often it is redirected inside. */
    if (lcf->limits.nelts == 0 || ngx_http_tollgate_get_ctx(r->main) != NULL) {
        return NGX_DECLINED;
    }

    if (ngx_http_tollgate_get_charges(r, &lcf->limits, &charges) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (charges.nelts == 0) {
        return NGX_DECLINED;
    }

    ctx = ngx_http_tollgate_create_ctx(r->main);
    if (ctx == NULL
        || ngx_http_tollgate_join_policies(r, &charges, &ctx->policies) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->asked = tollgate_now_ns(NGX_HTTP_TOLLGATE_CLOCK);

    /* Of several limits none is charged for what another refuses (unless that one is exhausted in between). */
    rc = charges.nelts > 1 ? ngx_http_tollgate_ask(r, &charges, 0, ctx) : NGX_OK;

    if (rc == NGX_OK) {
        rc = ngx_http_tollgate_ask(r, &charges, 1, ctx);
    }

    if (rc == NGX_ERROR) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->fields = lcf->fields && !lcf->dry_run;

    if (rc == NGX_OK) {
        ctx->status = NGX_HTTP_TOLLGATE_PASSED;
        return NGX_DECLINED;
    }

    ctx->status = lcf->dry_run ? NGX_HTTP_TOLLGATE_REJECTED_DRY_RUN
                               : NGX_HTTP_TOLLGATE_REJECTED;

    ngx_http_tollgate_log(r, lcf->log_level, ctx);

    return lcf->dry_run ? NGX_DECLINED : NGX_HTTP_TOO_MANY_REQUESTS;
}


/* The limits that a request falls under: those for which it has a key. */

static ngx_int_t
ngx_http_tollgate_get_charges(ngx_http_request_t *r, ngx_array_t *limits,
    ngx_array_t *charges)
{
    ngx_str_t                    key;
    ngx_uint_t                   i;
    ngx_http_tollgate_limit_t   *limit;
    ngx_http_tollgate_charge_t  *charge;

    if (ngx_array_init(charges, r->pool, limits->nelts, sizeof(ngx_http_tollgate_charge_t))
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    limit = limits->elts;

    for (i = 0; i < limits->nelts; i++) {

        if (ngx_http_complex_value(r, &limit[i].key, &key) != NGX_OK) {
            return NGX_ERROR;
        }

        if (key.len == 0) {
            continue;
        }

        charge = ngx_array_push(charges);
        if (charge == NULL) {
            return NGX_ERROR;
        }

        charge->zone = limit[i].zone;
        charge->key = key;
    }

    return NGX_OK;
}


/*
 * Asks each limit for a permit, or whether it had one. NGX_BUSY is a refusal; then the figures are those of the limit to
 * be waited for longest, else those of the one with the least left.
 */

static ngx_int_t
ngx_http_tollgate_ask(ngx_http_request_t *r, ngx_array_t *charges, ngx_flag_t takes,
    ngx_http_tollgate_ctx_t *ctx)
{
    int                          status;
    ngx_int_t                    rc;
    ngx_uint_t                   i;
    ngx_flag_t                   is_stricter;
    tollgate_decision_t          decision;
    ngx_http_tollgate_charge_t  *charge;

    rc = NGX_OK;
    charge = charges->elts;

    for (i = 0; i < charges->nelts; i++) {

        if (takes) {
            status = tollgate_shm_keyed_check_at(charge[i].zone->shm, charge[i].key.data,
                                                 charge[i].key.len, 1, ctx->asked,
                                                 &decision);
        } else {
            status = tollgate_shm_keyed_peek_at(charge[i].zone->shm, charge[i].key.data,
                                                charge[i].key.len, 1, ctx->asked,
                                                &decision);
        }

        if (status < 0) {
            ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                          "tollgate zone \"%V\", a key of %uz bytes: %s",
                          &charge[i].zone->name, charge[i].key.len,
                          tollgate_strerror(status));
            return NGX_ERROR;
        }

        if (decision.allowed) {
            is_stricter = rc == NGX_OK && decision.remaining < ctx->decision.remaining;

        } else {
            is_stricter = rc == NGX_OK
                          || decision.retry_after_ns > ctx->decision.retry_after_ns;
            rc = NGX_BUSY;
        }

        if (i == 0 || is_stricter) {
            ctx->zone = charge[i].zone;
            ctx->decision = decision;
        }

        if (rc == NGX_BUSY && takes) {
            break;
        }
    }

    return rc;
}


static ngx_int_t
ngx_http_tollgate_join_policies(ngx_http_request_t *r, ngx_array_t *charges,
    ngx_str_t *policies)
{
    size_t                       len;
    u_char                      *p;
    ngx_uint_t                   i;
    ngx_http_tollgate_charge_t  *charge;

    charge = charges->elts;

    if (charges->nelts == 1) {
        *policies = charge->zone->policy;
        return NGX_OK;
    }

    len = 0;

    for (i = 0; i < charges->nelts; i++) {
        len += charge[i].zone->policy.len + sizeof(", ") - 1;
    }

    p = ngx_pnalloc(r->pool, len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    policies->data = p;

    for (i = 0; i < charges->nelts; i++) {
        p = ngx_sprintf(p, "%s%V", i > 0 ? ", " : "", &charge[i].zone->policy);
    }

    policies->len = p - policies->data;

    return NGX_OK;
}


static void
ngx_http_tollgate_log(ngx_http_request_t *r, ngx_uint_t level,
    ngx_http_tollgate_ctx_t *ctx)
{
    u_char    wait[sizeof(", retry after .000s") + NGX_INT64_LEN];
    uint64_t  retry;

    wait[0] = '\0';
    retry = ctx->decision.retry_after_ns;

    if (retry != UINT64_MAX) {
        retry = (retry + NGX_HTTP_TOLLGATE_MS - 1) / NGX_HTTP_TOLLGATE_MS;
        *ngx_sprintf(wait, ", retry after %uL.%03uLs", retry / 1000, retry % 1000) = '\0';
    }

    ngx_log_error(level, r->connection->log, 0, "limiting requests%s by zone \"%V\", %V%s%s",
                  ctx->status == NGX_HTTP_TOLLGATE_REJECTED ? "" : ", dry run,",
                  &ctx->zone->name, &ctx->zone->text,
                  ctx->decision.reason == TOLLGATE_REASON_FULL
                      ? ", no room for another key" : "",
                  wait);
}


/* === what clients are told === */

static ngx_int_t
ngx_http_tollgate_header_filter(ngx_http_request_t *r)
{
    ngx_int_t                 rc;
    tollgate_decision_t      *decision;
    ngx_http_tollgate_ctx_t  *ctx;

    ctx = r == r->main ? ngx_http_tollgate_get_ctx(r) : NULL;

    if (ctx == NULL || !ctx->fields) {
        return ngx_http_next_header_filter(r);
    }

    decision = &ctx->decision;

    rc = ngx_http_tollgate_add_header(r, "RateLimit-Policy", ctx->policies.len, "%V",
                                      &ctx->policies);

    /* Where waiting changes nothing, no time is told. */

    if (decision->retry_after_ns == UINT64_MAX || decision->next_after_ns == 0) {
        rc |= ngx_http_tollgate_add_header(r, "RateLimit",
                  ctx->zone->name.len + sizeof("\"\";r=") + NGX_INT64_LEN, "\"%V\";r=%uL",
                  &ctx->zone->name, ngx_min(decision->remaining, NGX_HTTP_TOLLGATE_SF_MAX));

    } else {
        rc |= ngx_http_tollgate_add_header(r, "RateLimit",
                  ctx->zone->name.len + sizeof("\"\";r=;t=") + 2 * NGX_INT64_LEN,
                  "\"%V\";r=%uL;t=%uL", &ctx->zone->name,
                  ngx_min(decision->remaining, NGX_HTTP_TOLLGATE_SF_MAX),
                  ngx_http_tollgate_seconds(decision->next_after_ns));
    }

    if (!decision->allowed) {
        rc |= ngx_http_tollgate_add_header(r, "Cache-Control", sizeof("no-store"), "no-store");

        if (decision->retry_after_ns != UINT64_MAX) {
            rc |= ngx_http_tollgate_add_header(r, "Retry-After", NGX_INT64_LEN, "%uL",
                      ngx_max(ngx_http_tollgate_seconds(decision->retry_after_ns), 1));
        }
    }

    return rc == NGX_OK ? ngx_http_next_header_filter(r) : NGX_ERROR;
}


static ngx_int_t
ngx_http_tollgate_add_header(ngx_http_request_t *r, const char *name, size_t len,
    const char *fmt, ...)
{
    u_char           *p;
    va_list           args;
    ngx_table_elt_t  *h;

    h = ngx_list_push(&r->headers_out.headers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    h->hash = 0;    /* not sent, until it has a value */
    h->key.data = (u_char *) name;
    h->key.len = ngx_strlen(name);
#if (nginx_version >= 1023000)
    h->next = NULL;
#endif

    p = ngx_pnalloc(r->pool, len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    va_start(args, fmt);
    h->value.len = ngx_vslprintf(p, p + len, fmt, args) - p;
    va_end(args);

    h->value.data = p;
    h->hash = 1;

    return NGX_OK;
}


/* Whole seconds, rounded up: who waits so long finds what it was promised. */

static uint64_t
ngx_http_tollgate_seconds(uint64_t span)
{
    return span / NGX_HTTP_TOLLGATE_SECOND + (span % NGX_HTTP_TOLLGATE_SECOND != 0);
}


static ngx_int_t
ngx_http_tollgate_status_variable(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
    ngx_http_tollgate_ctx_t  *ctx;

    ctx = ngx_http_tollgate_get_ctx(r->main);

    if (ctx == NULL || ctx->status == 0) {
        v->not_found = 1;
        return NGX_OK;
    }

    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;
    v->len = ngx_http_tollgate_statuses[ctx->status].len;
    v->data = ngx_http_tollgate_statuses[ctx->status].data;

    return NGX_OK;
}


static ngx_int_t
ngx_http_tollgate_time_variable(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
    ngx_http_tollgate_ctx_t  *ctx;

    ctx = ngx_http_tollgate_get_ctx(r->main);

    if (ctx == NULL || ctx->status == 0) {
        v->not_found = 1;
        return NGX_OK;
    }

    v->data = ngx_pnalloc(r->pool, NGX_INT64_LEN);
    if (v->data == NULL) {
        return NGX_ERROR;
    }

    v->len = ngx_sprintf(v->data, "%uL", *(uint64_t *) ((u_char *) ctx + data)) - v->data;
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;

    return NGX_OK;
}


/*
 * A redirect inside clears the contexts of modules, but not what is to be cleaned up at the end of the request: so that is
 * where ours is found again.
 */

static ngx_http_tollgate_ctx_t *
ngx_http_tollgate_get_ctx(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t       *cln;
    ngx_http_tollgate_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_tollgate_module);

    if (ctx != NULL || !(r->internal || r->filter_finalize)) {
        return ctx;
    }

    for (cln = r->pool->cleanup; cln; cln = cln->next) {
        if (cln->handler == ngx_http_tollgate_cleanup_ctx) {
            return cln->data;
        }
    }

    return NULL;
}


static ngx_http_tollgate_ctx_t *
ngx_http_tollgate_create_ctx(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t       *cln;
    ngx_http_tollgate_ctx_t  *ctx;

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_tollgate_ctx_t));
    if (cln == NULL) {
        return NULL;
    }

    ctx = cln->data;
    ngx_memzero(ctx, sizeof(ngx_http_tollgate_ctx_t));

    cln->handler = ngx_http_tollgate_cleanup_ctx;
    ngx_http_set_ctx(r, ctx, ngx_http_tollgate_module);

    return ctx;
}


static void
ngx_http_tollgate_cleanup_ctx(void *data)
{
    /* It lies in the request's pool: nothing to be done. */
}


/* === a zone's region === */

/* Run by the master, before it forks workers. If it fails, the master goes on with the configuration that it has. */

static ngx_int_t
ngx_http_tollgate_init_zone(ngx_shm_zone_t *shm_zone, void *data)
{
    int                        status;
    ngx_err_t                  err;
    ngx_http_tollgate_zone_t  *zone, *before;

    zone = shm_zone->data;
    before = data;

    if (zone->limit.rule_count == 0) {
        return NGX_OK;    /* no directive names it */
    }

    if (zone->file.len == 0 && before != NULL && before->limit.rule_count != 0
        && before->file.len == 0
        && (ngx_memcmp(&zone->limit, &before->limit, sizeof(tollgate_config_t)) != 0
            || zone->region.flags != before->region.flags))
    {
        ngx_log_error(NGX_LOG_EMERG, shm_zone->shm.log, 0,
                      "tollgate zone \"%V\" is in use with %V, when_full=%s and cannot change to %V, "
                      "when_full=%s: give the new zone another name",
                      &zone->name, &before->text, ngx_http_tollgate_when_full(before),
                      &zone->text, ngx_http_tollgate_when_full(zone));
        return NGX_ERROR;
    }

    if (zone->file.len == 0) {

        if (before == NULL && ngx_http_tollgate_is_resized(shm_zone)) {
            ngx_log_error(NGX_LOG_WARN, shm_zone->shm.log, 0,
                          "tollgate zone \"%V\" has another size than before: it begins anew, "
                          "what its keys have taken is forgotten", &zone->name);
        }

        status = ngx_http_tollgate_place(shm_zone, zone);

        if (zone->region.keys == 0) {
            ngx_log_error(NGX_LOG_EMERG, shm_zone->shm.log, 0,
                          "tollgate zone \"%V\" of %uz bytes has no room for keys with %V",
                          &zone->name, shm_zone->shm.size, &zone->text);
            return NGX_ERROR;
        }

    } else if (ngx_test_config) {
        status = tollgate_shm_attach((char *) zone->file.data, &zone->region, &zone->shm);

        if (status == TOLLGATE_E_SYS && ngx_errno == NGX_ENOENT) {
            return NGX_OK;    /* a test makes no file */
        }

    } else {
        status = tollgate_shm_open((char *) zone->file.data, &zone->region, &zone->shm);
    }

    if (status == TOLLGATE_OK) {
        return NGX_OK;
    }

    err = status == TOLLGATE_E_SYS ? ngx_errno : 0;

    ngx_log_error(NGX_LOG_EMERG, shm_zone->shm.log, err,
                  "tollgate zone \"%V\" of %uL keys with %V, when_full=%s%s%V: %s",
                  &zone->name, zone->region.keys, &zone->text, ngx_http_tollgate_when_full(zone),
                  zone->file.len ? ", in " : "", &zone->file, tollgate_strerror(status));

    return NGX_ERROR;
}


/*
 * Makes a region of all the pages that a zone of nginx has, or finds the one that is there since an earlier configuration. The
 * pages are taken from nginx's allocator in one piece, and never given back.
 */

static int
ngx_http_tollgate_place(ngx_shm_zone_t *shm_zone, ngx_http_tollgate_zone_t *zone)
{
    size_t            len;
    ngx_slab_pool_t  *shpool;

    shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;
    len = (shpool->last - shpool->pages) * ngx_pagesize;

    if (shpool->data == NULL) {
        shpool->data = ngx_slab_calloc(shpool, len);
        if (shpool->data == NULL) {
            return TOLLGATE_E_NOMEM;
        }
    }

    zone->region.keys = ngx_http_tollgate_fit(&zone->region, len);

    if (zone->region.keys == 0) {
        return TOLLGATE_E_SIZE;
    }

    ngx_log_error(NGX_LOG_NOTICE, shm_zone->shm.log, 0, "tollgate zone \"%V\" has room for %uL keys",
                  &zone->name, zone->region.keys);

    return tollgate_shm_place(shpool->data, len, &zone->region, &zone->shm);
}


/* The most keys with which a region is at most so long. */

static uint64_t
ngx_http_tollgate_fit(const tollgate_shm_config_t *region, size_t len)
{
    size_t                 bytes;
    uint64_t               fits, fails, keys;
    tollgate_shm_config_t  tried;

    tried = *region;
    fits = 0;
    fails = len;    /* a key takes more than a byte */

    while (fails - fits > 1) {
        keys = fits + (fails - fits) / 2;
        tried.keys = keys;

        if (tollgate_shm_size(&tried, &bytes) == TOLLGATE_OK && bytes <= len) {
            fits = keys;
        } else {
            fails = keys;
        }
    }

    return fits;
}


/* Whether the configuration in use has the zone, too, but in a piece of memory of another size. */

static ngx_flag_t
ngx_http_tollgate_is_resized(ngx_shm_zone_t *shm_zone)
{
    ngx_uint_t        i;
    ngx_shm_zone_t   *zones;
    ngx_list_part_t  *part;

    for (part = (ngx_list_part_t *) &ngx_cycle->shared_memory.part; part; part = part->next) {
        zones = part->elts;

        for (i = 0; i < part->nelts; i++) {
            if (zones[i].tag == shm_zone->tag
                && zones[i].shm.name.len == shm_zone->shm.name.len
                && ngx_strncmp(zones[i].shm.name.data, shm_zone->shm.name.data,
                               shm_zone->shm.name.len) == 0)
            {
                return 1;
            }
        }
    }

    return 0;
}


static const char *
ngx_http_tollgate_when_full(const ngx_http_tollgate_zone_t *zone)
{
    return zone->region.flags & TOLLGATE_REFUSE_WHEN_FULL ? "refuse" : "share";
}


static void
ngx_http_tollgate_close(void *data)
{
    ngx_http_tollgate_zone_t  *zone = data;

    tollgate_shm_close(zone->shm);
}


/* === directives === */

static char *
ngx_http_tollgate_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char                      *rv;
    ngx_str_t                  name, size, file, keys, limiters, mode, when_full;
    ngx_uint_t                 i;
    ngx_shm_zone_t            *shm_zone;
    ngx_http_tollgate_zone_t  *zone;

    const ngx_http_tollgate_param_t  params[] = {
        { ngx_string("name"), &name },
        { ngx_string("size"), &size },
        { ngx_string("file"), &file },
        { ngx_string("keys"), &keys },
        { ngx_string("limiters"), &limiters },
        { ngx_string("mode"), &mode },
        { ngx_string("when_full"), &when_full },
        { ngx_null_string, NULL }
    };

    rv = ngx_http_tollgate_params(cf, params);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    if (name.len == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"%V\" must have \"name\" parameter",
                           &cmd->name);
        return NGX_CONF_ERROR;
    }

    for (i = 0; i < name.len; i++) {
        /* Clients are told it as a string of a structured field. */
        if (name.data[i] < ' ' || name.data[i] > '~' || name.data[i] == '"'
            || name.data[i] == '\\')
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid zone name \"%V\": it must be printable ASCII without "
                               "quotes and backslashes", &name);
            return NGX_CONF_ERROR;
        }
    }

    zone = ngx_http_tollgate_get_zone(cf, &name);
    if (zone == NULL) {
        return NGX_CONF_ERROR;
    }

    if (zone->declared) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "zone \"%V\" is already declared", &name);
        return NGX_CONF_ERROR;
    }

    zone->declared = 1;

    if (when_full.data && ngx_strcmp(when_full.data, "refuse") == 0) {
        zone->region.flags = TOLLGATE_REFUSE_WHEN_FULL;

    } else if (when_full.data && ngx_strcmp(when_full.data, "share") != 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid when_full \"%V\": it must be \"share\" or \"refuse\"",
                           &when_full);
        return NGX_CONF_ERROR;
    }

    if ((size.data == NULL) == (file.data == NULL)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "zone \"%V\" must have either \"size\" or \"file\" parameter", &name);
        return NGX_CONF_ERROR;
    }

    if (file.data) {
        zone->file = file;
        rv = ngx_http_tollgate_zone_file(cf, zone, &keys, &limiters, &mode, &shm_zone);

    } else if (keys.data || limiters.data || mode.data) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"keys\", \"limiters\" and \"mode\" are for zones in a file, and zone "
                           "\"%V\" is not", &name);
        return NGX_CONF_ERROR;

    } else {
        rv = ngx_http_tollgate_zone_memory(cf, zone, &size, &shm_zone);
    }

    if (rv != NGX_CONF_OK) {
        return rv;
    }

    if (shm_zone == NULL) {
        return NGX_CONF_ERROR;
    }

    shm_zone->init = ngx_http_tollgate_init_zone;
    shm_zone->data = zone;

    return NGX_CONF_OK;
}


static char *
ngx_http_tollgate_zone_memory(ngx_conf_t *cf, ngx_http_tollgate_zone_t *zone,
    ngx_str_t *size, ngx_shm_zone_t **shm_zone)
{
    ssize_t  bytes;

    bytes = ngx_parse_size(size);

    if (bytes < (ssize_t) (8 * ngx_pagesize)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid size \"%V\" of zone \"%V\": it must be like \"10m\", and at least %uzk",
                           size, &zone->name, 8 * ngx_pagesize / 1024);
        return NGX_CONF_ERROR;
    }

    *shm_zone = ngx_shared_memory_add(cf, &zone->name, bytes, &ngx_http_tollgate_module);

    return NGX_CONF_OK;
}


static char *
ngx_http_tollgate_zone_file(ngx_conf_t *cf, ngx_http_tollgate_zone_t *zone,
    ngx_str_t *keys, ngx_str_t *limiters, ngx_str_t *mode, ngx_shm_zone_t **shm_zone)
{
    uint64_t  bits;

    if (zone->file.len == 0 || ngx_conf_full_name(cf->cycle, &zone->file, 0) != NGX_OK) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "zone \"%V\" has no path in \"file\"",
                           &zone->name);
        return NGX_CONF_ERROR;
    }

    if (ngx_http_tollgate_number(keys, 10, &zone->region.keys) != NGX_OK
        || zone->region.keys == 0)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid keys \"%V\" of zone \"%V\" in a file: it must be a number above 0",
                           keys, &zone->name);
        return NGX_CONF_ERROR;
    }

    if (limiters->data
        && ngx_http_tollgate_number(limiters, 10, &zone->region.limiters) != NGX_OK)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid limiters \"%V\" of zone \"%V\": it must be a number",
                           limiters, &zone->name);
        return NGX_CONF_ERROR;
    }

    if (mode->data) {

        if (ngx_http_tollgate_number(mode, 8, &bits) != NGX_OK || bits == 0 || bits > 0777) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid mode \"%V\" of zone \"%V\": it must be octal, at most 777",
                               mode, &zone->name);
            return NGX_CONF_ERROR;
        }

        zone->region.mode = bits;
    }

    /* A zone of nginx that nobody uses, since nginx calls back for it at the right moment. */

    *shm_zone = ngx_shared_memory_add(cf, &zone->name, 8 * ngx_pagesize,
                                      &ngx_http_tollgate_module);

    return NGX_CONF_OK;
}


static char *
ngx_http_tollgate(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_tollgate_loc_conf_t  *lcf = conf;

    char                              *rv;
    ngx_str_t                          name, key;
    ngx_uint_t                         i;
    tollgate_config_t                  told;
    ngx_http_tollgate_zone_t          *zone;
    ngx_http_tollgate_limit_t         *limit;
    ngx_http_tollgate_terms_t          terms;
    ngx_http_compile_complex_value_t   ccv;

    const ngx_http_tollgate_param_t  params[] = {
        { ngx_string("zone"), &name },
        { ngx_string("key"), &key },
        { ngx_string("rate"), &terms.rate },
        { ngx_string("limit"), &terms.limit },
        { ngx_string("window"), &terms.window },
        { ngx_string("burst"), &terms.burst },
        { ngx_string("algorithm"), &terms.algorithm },
        { ngx_null_string, NULL }
    };

    rv = ngx_http_tollgate_params(cf, params);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    if (name.len == 0 || key.len == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"%V\" must have \"%s\" parameter",
                           &cmd->name, name.len == 0 ? "zone" : "key");
        return NGX_CONF_ERROR;
    }

    zone = ngx_http_tollgate_get_zone(cf, &name);
    if (zone == NULL) {
        return NGX_CONF_ERROR;
    }

    limit = lcf->limits.elts;

    for (i = 0; i < lcf->limits.nelts; i++) {
        if (zone == limit[i].zone) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "zone \"%V\" is named twice here", &name);
            return NGX_CONF_ERROR;
        }
    }

    rv = ngx_http_tollgate_terms(cf, &terms, &told);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    if (told.rule_count > 0) {
        rv = ngx_http_tollgate_set_limit(cf, zone, &told);
        if (rv != NGX_CONF_OK) {
            return rv;
        }
    }

    if (lcf->limits.elts == NULL
        && ngx_array_init(&lcf->limits, cf->pool, 1, sizeof(ngx_http_tollgate_limit_t)) != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    limit = ngx_array_push(&lcf->limits);
    if (limit == NULL) {
        return NGX_CONF_ERROR;
    }

    limit->zone = zone;

    ngx_memzero(&ccv, sizeof(ngx_http_compile_complex_value_t));

    ccv.cf = cf;
    ccv.value = &key;
    ccv.complex_value = &limit->key;

    if (ngx_http_compile_complex_value(&ccv) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    zone->used = 1;

    return NGX_CONF_OK;
}


/* Reads what a directive says of the limit; without any of it there is no rule. */

static char *
ngx_http_tollgate_terms(ngx_conf_t *cf, ngx_http_tollgate_terms_t *terms,
    tollgate_config_t *limit)
{
    char        *rv;
    ngx_uint_t   i;

    ngx_memzero(limit, sizeof(tollgate_config_t));

    limit->struct_size = TOLLGATE_CONFIG_SIZE;

    if (terms->rate.data == NULL && terms->limit.data == NULL && terms->window.data == NULL) {

        if (terms->burst.data || terms->algorithm.data) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "\"%s\" must stand beside \"rate\", or \"limit\" and \"window\"",
                               terms->burst.data ? "burst" : "algorithm");
            return NGX_CONF_ERROR;
        }

        return NGX_CONF_OK;
    }

    limit->rule_count = 1;

    rv = ngx_http_tollgate_rate(cf, terms, &limit->rules[0]);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    if (terms->algorithm.data == NULL) {
        limit->algorithm = TOLLGATE_LOG;
    }

    for (i = 0; terms->algorithm.data && ngx_http_tollgate_algorithms[i].number; i++) {
        if (ngx_strcmp(terms->algorithm.data, ngx_http_tollgate_algorithms[i].name) == 0) {
            limit->algorithm = ngx_http_tollgate_algorithms[i].number;
        }
    }

    if (limit->algorithm == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid algorithm \"%V\": it must be \"log\", \"window\", \"fixed\", "
                           "\"twowin\" or \"gcra\"", &terms->algorithm);
        return NGX_CONF_ERROR;
    }

    if (terms->burst.data == NULL) {
        return NGX_CONF_OK;
    }

    if (limit->algorithm != TOLLGATE_GCRA) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"burst\" is for algorithm=gcra alone");
        return NGX_CONF_ERROR;
    }

    if (ngx_http_tollgate_number(&terms->burst, 10, &limit->burst) != NGX_OK || limit->burst == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid burst \"%V\": it must be a number above 0", &terms->burst);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


/* Reads rate=100r/s, rate=30r/m, or limit=1000 window=60s. */

static char *
ngx_http_tollgate_rate(ngx_conf_t *cf, ngx_http_tollgate_terms_t *terms,
    tollgate_rule_t *rule)
{
    ngx_str_t  count, unit;
    ngx_int_t  ms;

    if (terms->rate.data && (terms->limit.data || terms->window.data)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"rate\" says the same as \"limit\" and \"window\": take either");
        return NGX_CONF_ERROR;
    }

    if (terms->rate.data) {
        count = terms->rate;
        count.len -= ngx_min(count.len, 3);

        unit.data = count.data + count.len;
        rule->window_ns = ngx_strcmp(unit.data, "r/s") == 0 ? NGX_HTTP_TOLLGATE_SECOND
                          : ngx_strcmp(unit.data, "r/m") == 0 ? 60 * NGX_HTTP_TOLLGATE_SECOND : 0;

        if (rule->window_ns == 0 || ngx_http_tollgate_number(&count, 10, &rule->limit) != NGX_OK) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid rate \"%V\": it must be like \"100r/s\" or \"30r/m\"",
                               &terms->rate);
            return NGX_CONF_ERROR;
        }

        return NGX_CONF_OK;
    }

    if (ngx_http_tollgate_number(&terms->limit, 10, &rule->limit) != NGX_OK) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid limit \"%V\": it must be a number, beside \"window\"",
                           &terms->limit);
        return NGX_CONF_ERROR;
    }

    ms = terms->window.len ? ngx_parse_time(&terms->window, 0) : NGX_ERROR;

    if (ms <= 0 || (uint64_t) ms > NGX_HTTP_TOLLGATE_WINDOW_MAX / NGX_HTTP_TOLLGATE_MS) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid window \"%V\": it must be like \"60s\" or \"500ms\", beside \"limit\"",
                           &terms->window);
        return NGX_CONF_ERROR;
    }

    rule->window_ns = ms * NGX_HTTP_TOLLGATE_MS;

    return NGX_CONF_OK;
}


/* A zone has one limit: all directives that tell it tell the same. */

static char *
ngx_http_tollgate_set_limit(ngx_conf_t *cf, ngx_http_tollgate_zone_t *zone,
    const tollgate_config_t *limit)
{
    int                     status;
    u_char                 *p;
    size_t                  bytes;
    ngx_str_t               text;
    tollgate_shm_config_t   smallest;
    const tollgate_rule_t  *rule;

    if (ngx_http_tollgate_describe(cf, limit, &text) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    if (zone->limit.rule_count > 0) {

        if (ngx_memcmp(&zone->limit, limit, sizeof(tollgate_config_t)) == 0) {
            return NGX_CONF_OK;
        }

        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "zone \"%V\" has the limit %V already, here it is %V", &zone->name,
                           &zone->text, &text);
        return NGX_CONF_ERROR;
    }

    zone->limit = *limit;
    zone->text = text;

    smallest = zone->region;
    smallest.keys = 1;
    status = tollgate_shm_size(&smallest, &bytes);

    if (status != TOLLGATE_OK) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "zone \"%V\" cannot have the limit %V: %s",
                           &zone->name, &zone->text, tollgate_strerror(status));
        return NGX_CONF_ERROR;
    }

    p = ngx_pnalloc(cf->pool, zone->name.len + sizeof("\"\";q=;w=") + 2 * NGX_INT64_LEN);
    if (p == NULL) {
        return NGX_CONF_ERROR;
    }

    rule = &zone->limit.rules[0];
    zone->policy.data = p;

    p = ngx_sprintf(p, "\"%V\";q=%uL", &zone->name, ngx_min(rule->limit, NGX_HTTP_TOLLGATE_SF_MAX));

    if (rule->window_ns % NGX_HTTP_TOLLGATE_SECOND == 0) {
        p = ngx_sprintf(p, ";w=%uL", rule->window_ns / NGX_HTTP_TOLLGATE_SECOND);
    }

    zone->policy.len = p - zone->policy.data;

    return NGX_CONF_OK;
}


/* 100 per 1s (log) */

static ngx_int_t
ngx_http_tollgate_describe(ngx_conf_t *cf, const tollgate_config_t *limit, ngx_str_t *text)
{
    u_char      *p;
    uint64_t     ms;
    ngx_uint_t   i;

    p = ngx_pnalloc(cf->pool, sizeof(" per ms (window, burst )") + 3 * NGX_INT64_LEN);
    if (p == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; ngx_http_tollgate_algorithms[i].number != limit->algorithm; i++) { /* void */ }

    text->data = p;
    ms = limit->rules[0].window_ns / NGX_HTTP_TOLLGATE_MS;

    p = ngx_sprintf(p, "%uL per %uL%s (%s", limit->rules[0].limit, ms % 1000 ? ms : ms / 1000,
                    ms % 1000 ? "ms" : "s", ngx_http_tollgate_algorithms[i].name);

    if (limit->burst > 0) {
        p = ngx_sprintf(p, ", burst %uL", limit->burst);
    }

    *p++ = ')';
    text->len = p - text->data;

    return NGX_OK;
}


/* The zone of a name, which may be declared before it is used, or after that. */

static ngx_http_tollgate_zone_t *
ngx_http_tollgate_get_zone(ngx_conf_t *cf, ngx_str_t *name)
{
    ngx_uint_t                       i;
    ngx_pool_cleanup_t              *cln;
    ngx_http_tollgate_zone_t       **zones, *zone;
    ngx_http_tollgate_main_conf_t   *mcf;

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_tollgate_module);
    zones = mcf->zones.elts;

    for (i = 0; i < mcf->zones.nelts; i++) {
        if (zones[i]->name.len == name->len
            && ngx_strncmp(zones[i]->name.data, name->data, name->len) == 0)
        {
            return zones[i];
        }
    }

    zones = ngx_array_push(&mcf->zones);
    cln = ngx_pool_cleanup_add(cf->pool, sizeof(ngx_http_tollgate_zone_t));
    if (zones == NULL || cln == NULL) {
        return NULL;
    }

    zone = cln->data;
    ngx_memzero(zone, sizeof(ngx_http_tollgate_zone_t));
    cln->handler = ngx_http_tollgate_close;

    zone->name = *name;
    zone->region.struct_size = TOLLGATE_SHM_CONFIG_SIZE;
    zone->region.clock = NGX_HTTP_TOLLGATE_CLOCK;
    zone->region.limit = &zone->limit;

    *zones = zone;

    return zone;
}


/* Reads all arguments of a directive as name=value. */

static char *
ngx_http_tollgate_params(ngx_conf_t *cf, const ngx_http_tollgate_param_t *params)
{
    ngx_str_t                        *args;
    ngx_uint_t                        i;
    const ngx_http_tollgate_param_t  *param;

    for (param = params; param->name.len; param++) {
        ngx_str_null(param->value);
    }

    args = cf->args->elts;

    for (i = 1; i < cf->args->nelts; i++) {

        for (param = params; param->name.len; param++) {
            if (ngx_strncmp(args[i].data, param->name.data, param->name.len) == 0
                && args[i].data[param->name.len] == '=')
            {
                break;
            }
        }

        if (param->name.len == 0) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid parameter \"%V\"", &args[i]);
            return NGX_CONF_ERROR;
        }

        if (param->value->data) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "duplicate parameter \"%V\"", &args[i]);
            return NGX_CONF_ERROR;
        }

        param->value->data = args[i].data + param->name.len + 1;
        param->value->len = args[i].len - param->name.len - 1;
    }

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_tollgate_number(const ngx_str_t *text, unsigned base, uint64_t *number)
{
    u_char    c;
    size_t    i;
    uint64_t  value;

    value = 0;

    for (i = 0; i < text->len; i++) {
        c = text->data[i];

        if (c < '0' || c >= '0' + base || value > (UINT64_MAX - (c - '0')) / base) {
            return NGX_ERROR;
        }

        value = value * base + (c - '0');
    }

    *number = value;

    return text->len > 0 ? NGX_OK : NGX_ERROR;
}


static void *
ngx_http_tollgate_create_main_conf(ngx_conf_t *cf)
{
    ngx_http_tollgate_main_conf_t  *mcf;

    mcf = ngx_palloc(cf->pool, sizeof(ngx_http_tollgate_main_conf_t));

    if (mcf == NULL
        || ngx_array_init(&mcf->zones, cf->pool, 1, sizeof(ngx_http_tollgate_zone_t *)) != NGX_OK)
    {
        return NULL;
    }

    return mcf;
}


static void *
ngx_http_tollgate_create_loc_conf(ngx_conf_t *cf)
{
    ngx_http_tollgate_loc_conf_t  *lcf;

    lcf = ngx_pcalloc(cf->pool, sizeof(ngx_http_tollgate_loc_conf_t));
    if (lcf == NULL) {
        return NULL;
    }

    lcf->log_level = NGX_CONF_UNSET_UINT;
    lcf->dry_run = NGX_CONF_UNSET;
    lcf->fields = NGX_CONF_UNSET;

    return lcf;
}


static char *
ngx_http_tollgate_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_tollgate_loc_conf_t  *prev = parent;
    ngx_http_tollgate_loc_conf_t  *conf = child;

    if (conf->limits.elts == NULL) {
        conf->limits = prev->limits;
    }

    ngx_conf_merge_uint_value(conf->log_level, prev->log_level, NGX_LOG_ERR);
    ngx_conf_merge_value(conf->dry_run, prev->dry_run, 0);
    ngx_conf_merge_value(conf->fields, prev->fields, 1);

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_tollgate_add_variables(ngx_conf_t *cf)
{
    ngx_http_variable_t  *var, *v;

    for (v = ngx_http_tollgate_variables; v->name.len; v++) {
        var = ngx_http_add_variable(cf, &v->name, v->flags);
        if (var == NULL) {
            return NGX_ERROR;
        }

        var->get_handler = v->get_handler;
        var->data = v->data;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_tollgate_init(ngx_conf_t *cf)
{
    ngx_uint_t                       i;
    ngx_http_handler_pt             *h;
    ngx_http_tollgate_zone_t       **zones;
    ngx_http_core_main_conf_t       *cmcf;
    ngx_http_tollgate_main_conf_t   *mcf;

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_tollgate_module);
    zones = mcf->zones.elts;

    for (i = 0; i < mcf->zones.nelts; i++) {

        if (!zones[i]->declared) {
            ngx_log_error(NGX_LOG_EMERG, cf->log, 0, "no \"tollgate_zone\" declares zone \"%V\"",
                          &zones[i]->name);
            return NGX_ERROR;
        }

        if (zones[i]->used && zones[i]->limit.rule_count == 0) {
            ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                          "no \"tollgate\" tells the limit of zone \"%V\": one must have \"rate\", or "
                          "\"limit\" and \"window\"", &zones[i]->name);
            return NGX_ERROR;
        }
    }

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    h = ngx_array_push(&cmcf->phases[NGX_HTTP_PREACCESS_PHASE].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = ngx_http_tollgate_handler;

    ngx_http_next_header_filter = ngx_http_top_header_filter;
    ngx_http_top_header_filter = ngx_http_tollgate_header_filter;

    return NGX_OK;
}
