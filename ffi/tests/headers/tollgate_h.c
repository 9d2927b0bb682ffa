/* tollgate.h as the first and only header, twice, in any C from C99 and any C++ from C++11. */
#include <tollgate/tollgate.h>
#include <tollgate/tollgate.h>

/* Every kind of thing that the header declares is used once, in the words that all these languages share. */
int use(const tollgate_config_t *config, tollgate_decision_t *decision);

int use(const tollgate_config_t *config, tollgate_decision_t *decision) {
    tollgate_limiter_t *limiter;
    size_t size = 0;
    int status = tollgate_size(config, &size);
    if (status == TOLLGATE_OK && size % tollgate_align() != 0) {
        return TOLLGATE_NEVER;
    }
    status = tollgate_create(config, &limiter);
    if (status == TOLLGATE_OK) {
        bool admitted = tollgate_try_acquire(limiter);
        status = admitted ? tollgate_check_at(limiter, 1, 0, decision) : TOLLGATE_REFUSED;
        tollgate_destroy(limiter);
    }
    return status;
}
