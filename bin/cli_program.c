/* Programs as shells and the kernel find them. */
#include "config.h"
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int cli_executable(const char *path, struct err *err)
{
    struct stat st;

    place_at(path);
    if (stat(path, &st))
        return err_sys(err, errno == ENOENT || errno == ENOTDIR ? CODE_NOTFOUND : CODE_NOEXEC, "cannot execute '%s'", path);
    if (S_ISDIR(st.st_mode))
        return err_set(err, CODE_NOEXEC, "cannot execute '%s': it is a folder", path);
    if (access(path, X_OK))
        return err_sys(err, CODE_NOEXEC, "cannot execute '%s'", path);
    return 0;
}

char *cli_search(const char *name, const char *list)
{
    struct strv dirs = { 0 };
    char *found = NULL;

    if (strchr(name, '/'))
        return cli_executable(name, NULL) ? NULL : path_absolute(name);
    strv_split(&dirs, list ? list : "/usr/local/bin:/usr/bin:/bin", ":");
    for (size_t i = 0; i < dirs.n && !found; i++) {
        char *p = path_join(*dirs.v[i] ? dirs.v[i] : ".", name);
        struct stat st;

        place_at(p);
        if (stat(p, &st) == 0 && S_ISREG(st.st_mode) && access(p, X_OK) == 0)
            found = path_absolute(p);
        free(p);
    }
    strv_release(&dirs);
    return found;
}

char *cli_interpreter(const char *path, const char *list)
{
    char head[256];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd >= 0 ? read(fd, head, sizeof(head) - 1) : -1;
    struct strv words = { 0 };
    char *found = NULL;

    if (fd >= 0)
        close(fd);
    if (n < 3 || head[0] != '#' || head[1] != '!')
        return NULL;
    head[n] = 0;
    head[strcspn(head, "\n")] = 0;
    strv_split(&words, head + 2 + strspn(head + 2, " \t"), " \t");
    for (size_t i = 0; i < words.n && !found; i++)
        if (*words.v[i] && (i == 0 ? !str_eq(path_base(words.v[i]), "env")
                                   : words.v[i][0] != '-' && !strchr(words.v[i], '=')))
            found = cli_search(words.v[i], list);
    strv_release(&words);
    return found;
}
