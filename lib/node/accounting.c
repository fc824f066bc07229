#include "config.h"
#include "node/accounting.h"

#include <stdlib.h>

void accounting_release(struct accounting *a)
{
    for (size_t i = 0; i < a->accounts.n; i++) {
        free(a->accounts.v[i].name);
        free(a->accounts.v[i].qos);
    }
    for (size_t i = 0; i < a->limits.n; i++) {
        free(a->limits.v[i].of);
        free(a->limits.v[i].whose);
        free(a->limits.v[i].tres);
    }
    free(a->accounts.v);
    free(a->limits.v);
    free(a->why);
    free(a->account);
    *a = (struct accounting){ 0 };
}

const char *accounting_account(const struct accounting *a, const char *account)
{
    return account ? account : a->account;
}

const char *accounting_qos(const struct accounting *a, const char *account, const char *qos)
{
    account = accounting_account(a, account);
    for (size_t i = 0; i < a->accounts.n && !qos; i++)
        if (str_eq(a->accounts.v[i].name, account))
            qos = a->accounts.v[i].qos;
    return qos;
}

bool accounting_holds(const struct accounting *a, const struct account_limit *l, const char *account, const char *qos)
{
    const char *of = l->qos ? accounting_qos(a, account, qos) : accounting_account(a, account);

    return of && str_eq(l->of, of);
}

const struct account_limit *accounting_submit(const struct accounting *a, const char *account, const char *qos)
{
    const struct account_limit *least = NULL;

    for (size_t i = 0; i < a->limits.n; i++) {
        const struct account_limit *l = &a->limits.v[i];

        if (l->kind == LIMIT_SUBMIT && accounting_holds(a, l, account, qos) && (!least || limit_left(l) < limit_left(least)))
            least = l;
    }
    return least;
}
