/* What is installed in a pin's prefix, as a list that makes it again elsewhere. Sources: conda's conda-meta/NAME.json (`url`,
 * `md5`) and the form of `conda list --explicit`; Python's core metadata (METADATA, PKG-INFO), PEP 440 and PEP 610. */
#include "config.h"

#include <ctype.h>
#include <dirent.h>
#include <jansson.h>
#include <stdlib.h>
#include "pin/pin_priv.h"

#define FILE_MAX_META ((size_t)16 << 20)

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorted names of a folder that end so; -1: it cannot be read. */
static int names_in(const char *dir, const char *end, struct strv *ret)
{
    DIR *d = opendir(dir);

    for (struct dirent *e; d && (e = readdir(d));)
        if (*e->d_name != '.' && str_ends(e->d_name, end))
            strv_add(ret, e->d_name);
    if (ret->n)
        qsort(ret->v, ret->n, sizeof(*ret->v), by_name);
    if (!d)
        return -1;
    closedir(d);
    return 0;
}

/* Foreign text goes into a list that other tools read by lines and words. */
static bool plain(const char *s, const char *others)
{
    bool ok = s && *s;

    for (; ok && *s; s++)
        ok = isalnum((unsigned char)*s) || strchr(others, *s);
    return ok;
}

static bool plain_url(const char *s)
{
    return plain(s, ":/._-+~%@=!,");
}

static json_t *load(const char *dir, const char *name)
{
    char *path = path_join(dir, name);
    struct str t = { 0 };
    json_t *j = file_read(path, FILE_MAX_META, &t, NULL) == 0 && t.len ? json_loadb(t.s, t.len, 0, NULL) : NULL;

    str_release(&t);
    free(path);
    return j;
}

static const char *text_of(const json_t *j, const char *key)
{
    return json_string_value(json_object_get(j, key));
}

/* ---- conda ---- */

static void conda_package(const char *file, const json_t *j, struct str *t, char **platform, struct strv *left)
{
    const char *url = text_of(j, "url"), *md5 = text_of(j, "md5"), *subdir = text_of(j, "subdir");

    if (!plain_url(url) || str_starts(url, "file:")) {
        strv_addf(left, "'%s' is left out: %s", file, !j ? "it cannot be read" : "it does not say from which address it came");
        return;
    }
    if (!*platform && plain(subdir, "-_") && !str_eq(subdir, "noarch"))
        *platform = xstrdup(subdir);
    str_add(t, url);
    if (plain(md5, ""))
        str_addf(t, "#%s", md5);
    str_add(t, "\n");
}

static int conda_explicit(const struct pin *p, struct str *ret, struct strv *left, struct err *err)
{
    char *dir = path_join(p->prefix, "conda-meta"), *platform = NULL;
    struct strv files = { 0 };
    struct str t = { 0 };
    int rc = names_in(dir, ".json", &files);

    for (size_t i = 0; i < files.n; i++) {
        json_t *j = load(dir, files.v[i]);

        conda_package(files.v[i], j, &t, &platform, left);
        json_decref(j);
    }
    if (rc || !t.len) {
        rc = err_set(err, CODE_IO, "'%s' holds no package of conda's; a venv is told by --format requirements", dir);
    } else {
        str_addf(ret, "# conda create --prefix DIR --file THIS\n");
        if (platform)
            str_addf(ret, "# platform: %s\n", platform);
        str_addf(ret, "@EXPLICIT\n%s", t.s);
    }
    free(dir);
    free(platform);
    strv_release(&files);
    str_release(&t);
    return rc;
}

/* ---- Python ---- */

/* "Name: value" before the first empty line; owned, NULL none. */
static char *header(const char *text, const char *name)
{
    size_t n = strlen(name);

    while (text && *text && *text != '\n' && *text != '\r') {
        if (strncasecmp(text, name, n) == 0 && text[n] == ':') {
            text += n + 1;
            text += strspn(text, " \t");
            return xstrndup(text, strcspn(text, "\r\n"));
        }
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
    return NULL;
}

/* Where pip took it from when that was no index (PEP 610): " @ git+URL@COMMIT"; owned, NULL: an index. */
static char *direct(const char *dir, const char *name, struct strv *left)
{
    json_t *j = load(dir, "direct_url.json"), *vcs = json_object_get(j, "vcs_info");
    const char *url = text_of(j, "url"), *kind = text_of(vcs, "vcs"), *commit = text_of(vcs, "commit_id");
    char *text = NULL;

    if (url && plain_url(url)) {
        if (plain(kind, "") && plain(commit, "._-"))
            text = xasprintf(" @ %s+%s@%s", kind, url, commit);
        else
            text = xasprintf(" @ %s", url);
        if (str_starts(url, "file:"))
            strv_addf(left, "'%s' was installed from '%s', which another machine has not", name, url);
    }
    json_decref(j);
    return text;
}

static void python_package(const char *dir, const char *file, struct strv *lines, struct strv *left)
{
    char *path = path_join(dir, file), *name = NULL, *version = NULL, *from = NULL;
    struct str t = { 0 };

    if (file_read(path, FILE_MAX_META, &t, NULL) == 0 && t.len) {
        name = header(t.s, "Name");
        version = header(t.s, "Version");
    }
    if (!plain(name, "._-") || !plain(version, ".!+_-")) {
        strv_addf(left, "'%s' is left out: no name and version in its %s", path_base(dir), file);
    } else if (!str_eq(name, "pip")) {
        from = direct(dir, name, left);
        strv_addf(lines, from ? "%s%s" : "%s==%s", name, from ? from : version);
        if (!from && strchr(version, '+'))
            strv_addf(left, "'%s==%s' is a build that PyPI does not have: give pip the index that it came from "
                            "(--extra-index-url)", name, version);
    }
    free(path);
    free(name);
    free(version);
    free(from);
    str_release(&t);
}

static void site_packages(const char *site, struct strv *lines, struct strv *left)
{
    static const struct { const char *end, *file; } forms[] = { { ".dist-info", "METADATA" }, { ".egg-info", "PKG-INFO" } };

    for (size_t f = 0; f < COUNT(forms); f++) {
        struct strv dirs = { 0 };

        names_in(site, forms[f].end, &dirs);
        for (size_t i = 0; i < dirs.n; i++) {
            char *dir = path_join(site, dirs.v[i]);

            python_package(dir, forms[f].file, lines, left);
            free(dir);
        }
        strv_release(&dirs);
    }
}

static int requirements(const struct pin *p, struct str *ret, struct strv *left, struct err *err)
{
    char *lib = path_join(p->prefix, "lib");
    struct strv all = { 0 }, lines = { 0 };
    int rc = 0;

    names_in(lib, "", &all);
    for (size_t i = 0; i < all.n; i++) {
        const char *digits = str_starts(all.v[i], "python") ? all.v[i] + 6 : "";
        char *site = xasprintf("%s/%s/site-packages", lib, all.v[i]);
        size_t before = lines.n;

        if (plain(digits, "."))
            site_packages(site, &lines, left);
        if (lines.n > before)
            str_addf(ret, "# Python %s, pip install -r THIS\n", digits);
        free(site);
    }
    if (!lines.n)
        rc = err_set(err, CODE_IO, "'%s' holds no Python package (python*/site-packages/*.dist-info)", lib);
    else
        qsort(lines.v, lines.n, sizeof(*lines.v), by_name);
    for (size_t i = 0; i < lines.n; i++)
        if (!i || !str_eq(lines.v[i], lines.v[i - 1]))
            str_addf(ret, "%s\n", lines.v[i]);
    free(lib);
    strv_release(&all);
    strv_release(&lines);
    return rc;
}

int pin_packages(const struct pin *p, const char *format, struct str *ret, struct strv *ret_left, struct err *err)
{
    if (!p->prefix || *p->prefix != '/')
        return err_set(err, CODE_USAGE, "the pin has no prefix: it was taken without an active conda environment or venv");
    return str_eq(format, "requirements") ? requirements(p, ret, ret_left, err) : conda_explicit(p, ret, ret_left, err);
}
