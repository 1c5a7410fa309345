/* Records, and lets fail, the system calls by which a process changes the files below one folder.
 *
 * Loaded with LD_PRELOAD. The process that is tested configures it through ctypes:
 *
 *     faults_begin(root, log, at, error, once, half)
 *         From now on count the calls on files below `root` and append each to the file `log` ("" writes none).
 *         The call number `at` (from 1; 0: none) fails with `error`, and so do all after it unless `once`.
 *         With `half`, a write that fails has written the first half of its bytes.
 *     faults_note(text)      appends a text to the log, between the calls
 *     faults_end()           returns how many calls were counted; from now on nothing is counted, recorded or fails
 *
 * An entry of the log: kind (4 bytes), inode (8), offset (8), flags (4), lengths of path, second path and data
 * (4, 4, 8), path, second path, data. Calls that fail are not in the log.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { OPEN = 1, WRITE, SYNC, RENAME, TRUNCATE, MKDIR, UNLINK, LINK, RMDIR, NOTE, MAP };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char root[PATH_MAX];
static int active, log_descriptor = -1, fail_error, fail_once, fail_half;
static long counted, fail_at;

#define REAL(name) \
    static __typeof__(name) *real; \
    if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

static ssize_t plain_write(int descriptor, const void *bytes, size_t count) {
    REAL(write);
    return real(descriptor, bytes, count);
}

static void append(const void *bytes, size_t count) {
    const char *left = bytes;
    while (count) {
        ssize_t done = plain_write(log_descriptor, left, count);
        if (done <= 0) abort();
        left += done;
        count -= (size_t)done;
    }
}

static void record(enum kind kind, uint64_t inode, uint64_t offset, uint32_t flags, const char *path, const char *second,
                   const void *data, uint64_t size) {
    if (log_descriptor < 0) return;
    uint32_t head = kind, lengths[2] = {(uint32_t)strlen(path), (uint32_t)strlen(second)};
    append(&head, 4);
    append(&inode, 8);
    append(&offset, 8);
    append(&flags, 4);
    append(lengths, 8);
    append(&size, 8);
    append(path, lengths[0]);
    append(second, lengths[1]);
    append(data, size);
}

void faults_begin(const char *folder, const char *log, long at, int error, int once, int half) {
    REAL(open);
    snprintf(root, sizeof root, "%s", folder);
    log_descriptor = *log ? real(log, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
    counted = 0;
    fail_at = at;
    fail_error = error;
    fail_once = once;
    fail_half = half;
    active = 1;
}

void faults_note(const char *text) {
    pthread_mutex_lock(&lock);
    record(NOTE, 0, 0, 0, "", "", text, strlen(text));
    pthread_mutex_unlock(&lock);
}

/* How many calls were counted so far. */
long faults_count(void) { return counted; }

long faults_end(void) {
    active = 0;
    if (log_descriptor >= 0) close(log_descriptor);
    log_descriptor = -1;
    return counted;
}

/* Whether the path is the folder or in it, or the folder's parent: its name is made durable there. */
static int is_below(const char *path) {
    size_t length = strlen(root);
    if (strncmp(path, root, length) == 0 && (path[length] == '/' || path[length] == 0)) return 1;
    const char *name = strrchr(root, '/');
    size_t parent = name ? (size_t)(name - root) : 0;
    return parent && strlen(path) == parent && strncmp(path, root, parent) == 0;
}

static int full_path(int folder, const char *path, char *full) {
    char base[PATH_MAX / 2], link[64];
    if (path[0] == '/') return snprintf(full, PATH_MAX, "%s", path), 1;
    if (folder == AT_FDCWD) {
        if (!getcwd(base, sizeof base)) return 0;
    } else {
        snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        ssize_t length = readlink(link, base, sizeof base - 1);
        if (length < 0) return 0;
        base[length] = 0;
    }
    snprintf(full, PATH_MAX, "%s/%s", base, path);
    return 1;
}

/* The file of a descriptor, if it is below the folder. A file that was removed counts as well. */
static int watched(int descriptor, char *path, uint64_t *inode) {
    char link[64];
    struct stat state;
    if (!active) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length < 0) return 0;
    path[length] = 0;
    if (path[0] != '/' || !is_below(path) || fstat(descriptor, &state)) return 0;
    *inode = state.st_ino;
    return 1;
}

/* Counts a call, with the lock held: whether it is to fail. */
static int must_fail(void) {
    counted++;
    if (!fail_at || counted < fail_at || (fail_once && counted > fail_at)) return 0;
    return 1;
}

static uint64_t inode_of(const char *path) {
    struct stat state;
    return lstat(path, &state) ? 0 : state.st_ino;
}

#define GUARDED(condition, failed, ...) \
    if (!(condition)) __VA_ARGS__; \
    pthread_mutex_lock(&lock); \
    if (must_fail()) { \
        pthread_mutex_unlock(&lock); \
        errno = fail_error; \
        return failed; \
    }

#define DONE(result) \
    do { \
        int kept = errno; \
        pthread_mutex_unlock(&lock); \
        errno = kept; \
        return result; \
    } while (0)

/* Opening for reading is not counted: what it could break is not written. */
#define OPENING(name, folder, ...) \
    mode_t mode = 0; \
    if (flags & (O_CREAT | O_TMPFILE)) { \
        va_list rest; \
        va_start(rest, flags); \
        mode = va_arg(rest, mode_t); \
        va_end(rest); \
    } \
    REAL(name); \
    char full[PATH_MAX]; \
    int changes = (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)); \
    GUARDED(active && changes && full_path(folder, path, full) && is_below(full), -1, return real(__VA_ARGS__, mode)) \
    int descriptor = real(__VA_ARGS__, mode); \
    if (descriptor >= 0) { \
        struct stat state; \
        fstat(descriptor, &state); \
        record(OPEN, state.st_ino, 0, (uint32_t)flags, full, "", "", 0); \
    } \
    DONE(descriptor);

int open(const char *path, int flags, ...) { OPENING(open, AT_FDCWD, path, flags) }
int open64(const char *path, int flags, ...) { OPENING(open64, AT_FDCWD, path, flags) }
int openat(int folder, const char *path, int flags, ...) { OPENING(openat, folder, folder, path, flags) }
int openat64(int folder, const char *path, int flags, ...) { OPENING(openat64, folder, folder, path, flags) }

static ssize_t write_half(int descriptor, const void *bytes, size_t count, off_t offset) {
    REAL(pwrite);
    if (fail_half && count > 1) (void)!real(descriptor, bytes, count / 2, offset);
    pthread_mutex_unlock(&lock);
    errno = fail_error;
    return -1;
}

ssize_t write(int descriptor, const void *bytes, size_t count) {
    REAL(write);
    char path[PATH_MAX];
    uint64_t inode;
    if (!watched(descriptor, path, &inode)) return real(descriptor, bytes, count);
    pthread_mutex_lock(&lock);
    off_t offset = lseek(descriptor, 0, SEEK_CUR);
    if (must_fail()) return write_half(descriptor, bytes, count, offset);
    ssize_t done = real(descriptor, bytes, count);
    if (done > 0) record(WRITE, inode, (uint64_t)offset, 0, path, "", bytes, (uint64_t)done);
    DONE(done);
}

#define WRITING_AT(name) \
    ssize_t name(int descriptor, const void *bytes, size_t count, off_t offset) { \
        REAL(name); \
        char path[PATH_MAX]; \
        uint64_t inode; \
        if (!watched(descriptor, path, &inode)) return real(descriptor, bytes, count, offset); \
        pthread_mutex_lock(&lock); \
        if (must_fail()) return write_half(descriptor, bytes, count, offset); \
        ssize_t done = real(descriptor, bytes, count, offset); \
        if (done > 0) record(WRITE, inode, (uint64_t)offset, 0, path, "", bytes, (uint64_t)done); \
        DONE(done); \
    }
WRITING_AT(pwrite)
WRITING_AT(pwrite64)

static ssize_t vector_write(int descriptor, const struct iovec *pieces, int count, off_t offset, int flags) {
    char path[PATH_MAX];
    uint64_t inode;
    REAL(pwritev2);
    if (!watched(descriptor, path, &inode)) return real(descriptor, pieces, count, offset, flags);
    pthread_mutex_lock(&lock);
    if (must_fail()) return write_half(descriptor, pieces[0].iov_base, pieces[0].iov_len, offset);
    ssize_t done = real(descriptor, pieces, count, offset, flags);
    uint64_t place = (uint64_t)offset, left = done > 0 ? (uint64_t)done : 0;
    for (int number = 0; left; number++) {
        uint64_t size = pieces[number].iov_len < left ? pieces[number].iov_len : left;
        record(WRITE, inode, place, (uint32_t)flags, path, "", pieces[number].iov_base, size);
        place += size;
        left -= size;
    }
    DONE(done);
}
ssize_t pwritev2(int descriptor, const struct iovec *pieces, int count, off_t offset, int flags) {
    return vector_write(descriptor, pieces, count, offset, flags);
}
ssize_t pwritev64v2(int descriptor, const struct iovec *pieces, int count, off_t offset, int flags) {
    return vector_write(descriptor, pieces, count, offset, flags);
}
ssize_t pwritev(int descriptor, const struct iovec *pieces, int count, off_t offset) {
    return vector_write(descriptor, pieces, count, offset, 0);
}
ssize_t pwritev64(int descriptor, const struct iovec *pieces, int count, off_t offset) {
    return vector_write(descriptor, pieces, count, offset, 0);
}

#define SYNCING(name) \
    int name(int descriptor) { \
        REAL(name); \
        char path[PATH_MAX]; \
        uint64_t inode; \
        GUARDED(watched(descriptor, path, &inode), -1, return real(descriptor)) \
        record(SYNC, inode, 0, 0, path, "", "", 0); \
        DONE(0); /* The model knows what a sync does, and the disk need not. */ \
    }
SYNCING(fsync)
SYNCING(fdatasync)

#define CUTTING(name) \
    int name(int descriptor, off_t length) { \
        REAL(name); \
        char path[PATH_MAX]; \
        uint64_t inode; \
        GUARDED(watched(descriptor, path, &inode), -1, return real(descriptor, length)) \
        int done = real(descriptor, length); \
        if (!done) record(TRUNCATE, inode, (uint64_t)length, 0, path, "", "", 0); \
        DONE(done); \
    }
CUTTING(ftruncate)
CUTTING(ftruncate64)

#define TWO_PATHS(kind, first, from, second, to, ...) \
    char source[PATH_MAX], target[PATH_MAX]; \
    GUARDED(active && full_path(first, from, source) && full_path(second, to, target) && is_below(target), -1, \
            return real(__VA_ARGS__)) \
    uint64_t inode = inode_of(source); \
    int done = real(__VA_ARGS__); \
    if (!done) record(kind, inode, 0, 0, source, target, "", 0); \
    DONE(done);

int rename(const char *from, const char *to) { REAL(rename); TWO_PATHS(RENAME, AT_FDCWD, from, AT_FDCWD, to, from, to) }
int renameat(int first, const char *from, int second, const char *to) {
    REAL(renameat);
    TWO_PATHS(RENAME, first, from, second, to, first, from, second, to)
}
int link(const char *from, const char *to) { REAL(link); TWO_PATHS(LINK, AT_FDCWD, from, AT_FDCWD, to, from, to) }
int linkat(int first, const char *from, int second, const char *to, int flags) {
    REAL(linkat);
    TWO_PATHS(LINK, first, from, second, to, first, from, second, to, flags)
}

#define ONE_PATH(kind, folder, path, ...) \
    char full[PATH_MAX]; \
    GUARDED(active && full_path(folder, path, full) && is_below(full), -1, return real(__VA_ARGS__)) \
    uint64_t inode = kind == MKDIR ? 0 : inode_of(full); \
    int done = real(__VA_ARGS__); \
    if (!done) record(kind, inode ? inode : inode_of(full), 0, 0, full, "", "", 0); \
    DONE(done);

int unlink(const char *path) { REAL(unlink); ONE_PATH(UNLINK, AT_FDCWD, path, path) }
int unlinkat(int folder, const char *path, int flags) {
    REAL(unlinkat);
    ONE_PATH(flags & AT_REMOVEDIR ? RMDIR : UNLINK, folder, path, folder, path, flags)
}
int rmdir(const char *path) { REAL(rmdir); ONE_PATH(RMDIR, AT_FDCWD, path, path) }
int mkdir(const char *path, mode_t mode) { REAL(mkdir); ONE_PATH(MKDIR, AT_FDCWD, path, path, mode) }
int mkdirat(int folder, const char *path, mode_t mode) { REAL(mkdirat); ONE_PATH(MKDIR, folder, path, folder, path, mode) }

#define MAPPING(name) \
    void *name(void *address, size_t length, int protection, int flags, int descriptor, off_t offset) { \
        REAL(name); \
        char path[PATH_MAX]; \
        uint64_t inode; \
        GUARDED(descriptor >= 0 && watched(descriptor, path, &inode), MAP_FAILED, \
                return real(address, length, protection, flags, descriptor, offset)) \
        void *done = real(address, length, protection, flags, descriptor, offset); \
        DONE(done); \
    }
MAPPING(mmap)
MAPPING(mmap64)
