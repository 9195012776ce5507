/* Runs a command while it holds a lock: lock [-n] [-s] [-f] FILE COMMAND [ARGUMENT ...]

   -n ends with status 9 if the lock is taken, -s asks for a shared lock, -f asks for fcntl's lock of the first 10 bytes instead of
   flock's. Debian's static busybox has no such program. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

static int take(int file, int shared, int now, int range) {
    struct flock lock = {.l_type = shared ? F_RDLCK : F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 10};
    if (range)
        return fcntl(file, now ? F_SETLK : F_SETLKW, &lock);
    return flock(file, (shared ? LOCK_SH : LOCK_EX) | (now ? LOCK_NB : 0));
}

int main(int count, char **words) {
    int now = 0, shared = 0, range = 0, option, status = 1;
    while ((option = getopt(count, words, "+nsf")) != -1) {
        now |= option == 'n';
        shared |= option == 's';
        range |= option == 'f';
    }
    int file = open(words[optind], O_RDWR | O_CREAT, 0644);
    if (file < 0 || take(file, shared, now, range) < 0) {
        if (now && (errno == EWOULDBLOCK || errno == EACCES))
            return 9;
        fprintf(stderr, "%s: %s\n", words[optind], strerror(errno));
        return 1;
    }
    pid_t child = fork();
    if (child == 0) {
        execvp(words[optind + 1], words + optind + 1);
        return 127;
    }
    waitpid(child, &status, 0);
    close(file);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
