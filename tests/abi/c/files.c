/*
 * Tests the files of ipc endpoints: a socket replaces an unused file, and leaves its own file for the next socket.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "addresses.h"

static char directory[] = "/tmp/addresses-XXXXXX";
static void *context;

/* Returns a path in the directory. The text is valid until the fourth call after this one. */
static const char *in_directory(const char *name)
{
    static char text[4][128];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(text[turn], sizeof text[0], "%s/%s", directory, name);
    return text[turn];
}

static const char *endpoint_of(const char *path)
{
    static char text[256];
    snprintf(text, sizeof text, "ipc://%s", path);
    return text;
}

static int bind_path(void *socket, const char *path)
{
    return zmq_bind(socket, endpoint_of(path));
}

static void *bound(const char *path)
{
    void *pull = new_socket(context, ZMQ_PULL, 0);
    check(bind_path(pull, path) == 0, path, __FILE__, __LINE__);
    return pull;
}

static int exists(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0;
}

static int is_socket(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0 && S_ISSOCK(status.st_mode);
}

/* Creates a file with this text. */
static void make(const char *path, const char *text)
{
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0666);
    CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

static int holds(const char *path, const char *text)
{
    char data[32] = "";
    int fd = open(path, O_RDONLY);
    int ok = fd >= 0 && read(fd, data, sizeof data - 1) == (ssize_t)strlen(text) && strcmp(data, text) == 0;
    if (fd >= 0)
        close(fd);
    return ok;
}

/* A second socket takes over a bound path, and keeps it when the first socket closes. A leftover file has no listener. */
static void takeover(int unbind)
{
    const char *path = in_directory("taken");
    void *first = bound(path), *second;
    CHECK(arrives(context, first, endpoint_of(path), 0));
    second = bound(path);
    if (unbind)
        CHECK(zmq_unbind(first, endpoint_of(path)) == 0);
    CHECK(zmq_close(first) == 0);
    CHECK(is_socket(path));
    CHECK(arrives(context, second, endpoint_of(path), 0));
    CHECK(zmq_close(second) == 0);
    CHECK(is_socket(path) && unlink(path) == 0);
}

/* The first socket takes the path back. The sockets close in both orders. */
static void there_and_back(void)
{
    const char *path = in_directory("back");
    void *first = bound(path), *second = bound(path);
    CHECK(zmq_unbind(first, endpoint_of(path)) == 0);
    CHECK(bind_path(first, path) == 0);
    CHECK(zmq_close(second) == 0);
    CHECK(is_socket(path));
    CHECK(arrives(context, first, endpoint_of(path), 0));
    CHECK(zmq_close(first) == 0);
    CHECK(is_socket(path) && unlink(path) == 0);
}

/* A socket of another context takes over the path, and that context is terminated. */
static void other_context(void)
{
    const char *path = in_directory("context");
    void *other = zmq_ctx_new(), *first = zmq_socket(other, ZMQ_PULL), *second;
    CHECK(bind_path(first, path) == 0);
    second = bound(path);
    CHECK(zmq_close(first) == 0 && zmq_ctx_term(other) == 0);
    CHECK(arrives(context, second, endpoint_of(path), 0));
    CHECK(zmq_close(second) == 0);
    unlink(path);
}

/* A killed process leaves its file. A forked process does not affect the file of its parent. */
static void processes(void)
{
    const char *path = in_directory("stale");
    int status = -1, ready[2];
    char byte;
    pid_t child;
    void *pull;
    CHECK(pipe(ready) == 0);
    child = fork();
    if (child == 0) {
        void *own = zmq_ctx_new();
        int ok = bind_path(zmq_socket(own, ZMQ_PULL), path) == 0 && write(ready[1], "x", 1) == 1;
        while (ok)
            pause();
        _exit(1);
    }
    CHECK(read(ready[0], &byte, 1) == 1);
    CHECK(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child);
    CHECK(is_socket(path));
    pull = bound(path);
    CHECK(arrives(context, pull, endpoint_of(path), 0));
    if (strict) {
        child = fork();
        if (child == 0)
            _exit(zmq_close(pull) != 0 || zmq_ctx_term(context) != 0);
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    CHECK(is_socket(path));
    CHECK(arrives(context, pull, endpoint_of(path), 0));
    CHECK(zmq_close(pull) == 0);
    close(ready[0]);
    close(ready[1]);
    unlink(path);
}

/* Another program moves the file away and puts a different one in its place. */
static void renamed(void)
{
    const char *path = in_directory("before"), *moved = in_directory("after");
    void *pull = bound(path);
    CHECK(rename(path, moved) == 0);
    CHECK(arrives(context, pull, endpoint_of(moved), 0));
    make(path, "text");
    CHECK(zmq_close(pull) == 0);
    CHECK(is_socket(moved) && holds(path, "text"));
    unlink(path);
    pull = bound(path);
    CHECK(unlink(path) == 0 && mkdir(path, 0777) == 0);
    CHECK(zmq_close(pull) == 0 && exists(path));
    CHECK(rmdir(path) == 0 && unlink(moved) == 0);
}

/* A relative path belongs to the working directory of its bind. */
static void relative(void)
{
    const char *path = in_directory("here"), *other = in_directory("elsewhere"), *same = in_directory("elsewhere/here");
    void *pull;
    CHECK(mkdir(other, 0777) == 0 && chdir(directory) == 0);
    pull = bound("here");
    CHECK(is_socket(path));
    CHECK(strcmp(last_endpoint(pull), "ipc://here") == 0);
    CHECK(chdir(other) == 0);
    make(same, "text");
    CHECK(zmq_close(pull) == 0);
    CHECK(holds(same, "text"));
    CHECK(is_socket(path) && unlink(path) == 0);
    CHECK(chdir("/") == 0 && unlink(same) == 0 && rmdir(other) == 0);
}

/* A bind replaces an empty object at its path. It keeps data and directories. */
static void in_the_way(void)
{
    const char *path = in_directory("way"), *target = in_directory("target");
    void *pull = new_socket(context, ZMQ_PULL, 0);
    CHECK(mkdir(path, 0777) == 0);
    CHECK_ERRNO(bind_path(pull, path), -1, EADDRINUSE);
    CHECK(rmdir(path) == 0);
    if (strict) {
        make(path, "text");
        CHECK_ERRNO(bind_path(pull, path), -1, EADDRINUSE);
        CHECK(holds(path, "text"));
        CHECK(unlink(path) == 0);
    }
    make(path, "");
    CHECK(bind_path(pull, path) == 0 && is_socket(path));
    CHECK(zmq_unbind(pull, endpoint_of(path)) == 0);
    unlink(path);
    CHECK(mkfifo(path, 0777) == 0);
    CHECK(bind_path(pull, path) == 0 && is_socket(path));
    CHECK(zmq_unbind(pull, endpoint_of(path)) == 0);
    unlink(path);
    make(target, "text");
    CHECK(symlink(target, path) == 0);
    CHECK(bind_path(pull, path) == 0 && is_socket(path) && holds(target, "text"));
    CHECK(zmq_unbind(pull, endpoint_of(path)) == 0);
    unlink(path);
    CHECK(unlink(target) == 0 && symlink(target, path) == 0);
    CHECK(bind_path(pull, path) == 0 && is_socket(path) && !exists(target));
    if (strict && getuid() == 0 && mknod(target, S_IFCHR | 0666, 0x103) == 0) {
        CHECK_ERRNO(bind_path(pull, target), -1, EADDRINUSE);
        CHECK(exists(target) && unlink(target) == 0);
    }
    CHECK_ERRNO(bind_path(pull, in_directory("nowhere/x")), -1, ENOENT);
    CHECK(zmq_close(pull) == 0);
    unlink(path);
}

/* A bind fails in a read-only directory, and for another user's file in a directory where only owners may remove files. */
static void permissions(void)
{
    const char *shut = in_directory("shut"), *file = in_directory("shut/file"), *sticky = in_directory("sticky");
    int status = -1;
    pid_t child;
    void *pull;
    if (getuid() != 0) {
        skip("permissions of ipc files", "that takes root");
        return;
    }
    CHECK(mkdir(shut, 0755) == 0 && chmod(directory, 0755) == 0);
    CHECK(mkdir(sticky, 0777) == 0 && chmod(sticky, 01777) == 0);
    pull = bound(file);
    CHECK(bind_path(pull, in_directory("sticky/file")) == 0);
    child = fork();
    if (child == 0) {
        void *own = zmq_ctx_new(), *socket = zmq_socket(own, ZMQ_PULL);
        failed = 0;
        if (setgid(65534) != 0 || setuid(65534) != 0)
            _exit(1);
        CHECK_ERRNO(bind_path(socket, in_directory("shut/new")), -1, EACCES);
        CHECK_ERRNO(bind_path(socket, in_directory("shut/file")), -1, EADDRINUSE);
        CHECK_ERRNO(bind_path(socket, in_directory("sticky/file")), -1, EADDRINUSE);
        CHECK(bind_path(socket, in_directory("sticky/own")) == 0);
        CHECK(zmq_close(socket) == 0 && zmq_ctx_term(own) == 0);
        _exit(failed);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    file = in_directory("shut/file");
    CHECK(arrives(context, pull, endpoint_of(file), 0));
    CHECK(zmq_close(pull) == 0);
    unlink(in_directory("shut/file"));
    unlink(in_directory("sticky/file"));
    unlink(in_directory("sticky/own"));
    CHECK(rmdir(in_directory("shut")) == 0 && rmdir(in_directory("sticky")) == 0);
}

/* The directory of a wildcard endpoint is removed with the file, unless it has other files. */
static void wildcards(void)
{
    static const char *const variables[] = {"TMPDIR", "TEMPDIR", "TMP"};
    char path[2][256], other[300];
    void *pull[2];
    size_t i;
    for (i = 0; i < 3; i++) {
        /* A variable that does not name a directory is ignored. */
        if (i > 0)
            setenv(variables[i - 1], in_directory("no-directory"), 1);
        setenv(variables[i], directory, 1);
        pull[0] = new_socket(context, ZMQ_PULL, 0);
        CHECK(zmq_bind(pull[0], "ipc://*") == 0);
        check(strncmp(last_endpoint(pull[0]) + 6, directory, strlen(directory)) == 0, variables[i], __FILE__, __LINE__);
        CHECK(arrives(context, pull[0], last_endpoint(pull[0]), 0));
        CHECK(zmq_close(pull[0]) == 0);
    }
    for (i = 0; i < 2; i++) {
        pull[i] = new_socket(context, ZMQ_PULL, 0);
        CHECK(zmq_bind(pull[i], "ipc://*") == 0);
        strcpy(path[i], last_endpoint(pull[i]) + strlen("ipc://"));
    }
    if (strict) {
        /* Another socket takes over the first path. The directory of the second path gets another file. */
        void *taker = bound(path[0]);
        *strrchr(path[1], '/') = 0;
        snprintf(other, sizeof other, "%s/other", path[1]);
        make(other, "text");
        CHECK(zmq_close(pull[0]) == 0 && zmq_close(pull[1]) == 0);
        CHECK(arrives(context, taker, endpoint_of(path[0]), 0));
        CHECK(zmq_close(taker) == 0 && is_socket(path[0]) && unlink(path[0]) == 0);
        CHECK(holds(other, "text") && unlink(other) == 0 && rmdir(path[1]) == 0);
        *strrchr(path[0], '/') = 0;
        CHECK(rmdir(path[0]) == 0);
    } else {
        CHECK(zmq_close(pull[0]) == 0 && zmq_close(pull[1]) == 0);
    }
    for (i = 0; i < 3; i++)
        unsetenv(variables[i]);
}

void files(void)
{
    if (mkdtemp(directory) == NULL) {
        skip("ipc files", "there is no place for them");
        return;
    }
    context = zmq_ctx_new();
    takeover(0);
    takeover(1);
    there_and_back();
    other_context();
    processes();
    renamed();
    relative();
    in_the_way();
    permissions();
    wildcards();
    /* The directory is empty now. */
    check(zmq_ctx_term(context) == 0 && rmdir(directory) == 0, directory, __FILE__, __LINE__);
}
