/* Compiles many programs with one build of libfusec and writes a line for each, so that two builds
 * can be compared. tools/same_as.sh says which programs and compares the lines.
 *
 *   same_compile LIBRARY --targets              the library's targets, each with its artifact's
 * kind same_compile LIBRARY N_PROCESSES RESULTS    compiles the jobs of the standard input
 *   same_compile LIBRARY FILE NAME TARGET KIND OPTION    one artifact to the standard output
 *
 * A job is a line `KEY:NAME:TARGET:KIND:OPTION FILE`: the program in FILE is compiled under NAME.
 * Its line in RESULTS, at no certain place, is the job's first word, the status, the artifact's
 * size in bytes, a hash of the artifact and a hash of the messages. The line of the manifest that
 * names the compiler's version and the checksum over it are left out of the hash.
 *
 * The library is loaded at run time: this program knows its public interface and nothing else.
 * Every program is compiled in a process of its own, so that a crash is the result of one job. */
#include <fusec.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECONDS = 600, MAX_PROCESSES = 64, N_PARTS = 5, LOST = 3 };

typedef struct Library {
    const char *(*target_name)(size_t);
    fusec_status (*compile)(const char *, size_t, const fusec_options *, fusec_result **);
    void (*free)(fusec_result *);
    const void *(*bytes)(const fusec_result *, size_t *);
    const char *(*messages)(const fusec_result *);
} Library;

typedef struct Job {
    char *id, *file; /* of one line, which was cut at the blank */
} Job;

typedef struct Jobs {
    Job *data;
    size_t n;
} Jobs;

/* What the parts of a job's id say. */
typedef struct Request {
    const char *name, *target, *kind, *option;
} Request;

static void fail(const char *what, const char *why) {
    fprintf(stderr, "same_compile: %s: %s\n", what, why);
    exit(2);
}

static void *allocate(void *old, size_t n_bytes) {
    void *memory = realloc(old, n_bytes);
    if (!memory) fail("memory", "is out");
    return memory;
}

/* The library. */

/* `function` is where the pointer to the function goes. */
static void find(void *handle, const char *name, void *function) {
    void *symbol = dlsym(handle, name);
    if (!symbol) fail(name, dlerror());
    memcpy(function, &symbol, sizeof symbol);
}

static Library load(const char *path) {
    Library library;
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) fail(path, dlerror());
    find(handle, "fusec_target_name", &library.target_name);
    find(handle, "fusec_compile", &library.compile);
    find(handle, "fusec_result_free", &library.free);
    find(handle, "fusec_result_bytes", &library.bytes);
    find(handle, "fusec_result_messages", &library.messages);
    return library;
}

/* Whether the kind of that name was found. */
static bool set_kind(fusec_options *options, const char *name) {
    static const char *const names[] = {
#define FUSEC_KIND(sym, number, name, extension, device, is_binary, doc) [FUSEC_##sym] = name,
#include "fusec_kinds.def"
    };
    for (int kind = 0; kind < FUSEC_KIND_COUNT; kind++) {
        if (strcmp(name, names[kind]) != 0) continue;
        options->kind = (fusec_kind)kind;
        return true;
    }
    return false;
}

static bool set_option(fusec_options *options, const char *name) {
    options->no_fuse = strcmp(name, "no-fuse") == 0;
    options->numerics = strcmp(name, "fast") == 0 ? "fast" : "strict";
    options->rewrites = strcmp(name, "rewrite") == 0 ? FUSEC_REWRITES_ON : FUSEC_REWRITES_DEFAULT;
    return options->no_fuse || options->numerics[0] == 'f' || options->rewrites ||
           strcmp(name, "default") == 0;
}

static fusec_status compile(const Library *library, const Request *request, const char *text,
                            size_t n_bytes, fusec_result **result) {
    fusec_options options = FUSEC_OPTIONS_INIT;
    if (!set_kind(&options, request->kind)) fail(request->kind, "no kind of output");
    if (!set_option(&options, request->option)) fail(request->option, "no option");
    options.target = request->target;
    options.source_name = request->name;
    return library->compile(text, n_bytes, &options, result);
}

/* Files. */

static char *read_stream(FILE *stream, size_t *n_bytes) {
    char *bytes = NULL;
    size_t n = 0, n_read = 0;
    do {
        bytes = allocate(bytes, n + (1 << 16));
        n_read = fread(bytes + n, 1, (1 << 16) - 1, stream);
        n += n_read;
    } while (n_read > 0);
    bytes[n] = '\0';
    *n_bytes = n;
    return bytes;
}

static char *read_file(const char *path, size_t *n_bytes) {
    FILE *file = fopen(path, "r");
    if (!file) fail(path, "cannot be read");
    char *bytes = read_stream(file, n_bytes);
    fclose(file);
    return bytes;
}

/* Hashes. */

typedef struct Hash {
    uint64_t a, b;
} Hash;

static Hash hash_of(const char *bytes, size_t n_bytes) {
    Hash hash = {UINT64_C(0xcbf29ce484222325), UINT64_C(0x9e3779b97f4a7c15)};
    for (size_t i = 0; i < n_bytes; i++) {
        uint64_t byte = (unsigned char)bytes[i];
        hash.a = (hash.a ^ byte) * UINT64_C(0x100000001b3);
        hash.b = (hash.b + byte + 1) * UINT64_C(0xd6e8feb86659fd93);
        hash.b ^= hash.b >> 32;
    }
    return hash;
}

/* Blanks the rest of the first line that begins like this. */
static void blank_line(char *bytes, size_t n_bytes, const char *begin) {
    size_t n_begin = strlen(begin);
    for (size_t i = 0; i + n_begin <= n_bytes; i++) {
        if (bytes[i] != '/' || memcmp(bytes + i, begin, n_begin) != 0) continue;
        for (size_t k = i + n_begin; k < n_bytes && bytes[k] != '\n'; k++) bytes[k] = ' ';
        return;
    }
}

static Hash hash_of_artifact(const void *bytes, size_t n_bytes) {
    char *copy = allocate(NULL, n_bytes + 1);
    if (n_bytes) memcpy(copy, bytes, n_bytes);
    blank_line(copy, n_bytes, "//@ compiler ");
    blank_line(copy, n_bytes, "//@ checksum ");
    Hash hash = hash_of(copy, n_bytes);
    free(copy);
    return hash;
}

/* Jobs. */

static Jobs read_jobs(void) {
    size_t n_bytes, capacity = 0;
    char *text = read_stream(stdin, &n_bytes);
    Jobs jobs = {NULL, 0};
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char *blank = strchr(line, ' ');
        if (!blank) fail(line, "no job");
        *blank = '\0';
        if (jobs.n == capacity) {
            capacity = 2 * capacity + 1024;
            jobs.data = allocate(jobs.data, capacity * sizeof *jobs.data);
        }
        jobs.data[jobs.n++] = (Job){line, blank + 1};
    }
    return jobs;
}

/* `id` is cut at its colons. */
static Request request_of(char *id) {
    char *parts[N_PARTS] = {id};
    for (int i = 1; i < N_PARTS; i++) {
        char *colon = strchr(parts[i - 1], ':');
        if (!colon) fail(id, "no job");
        *colon = '\0';
        parts[i] = colon + 1;
    }
    return (Request){parts[1], parts[2], parts[3], parts[4]};
}

/* Lines are short and go to the file's end, so that those of several processes do not mix. */
static void write_line(int results, const char *line, size_t n_bytes) {
    if (write(results, line, n_bytes) != (ssize_t)n_bytes) fail("the results", "cannot be written");
}

static void run_job(const Library *library, const Job *job, const char *text, size_t n_text,
                    int results) {
    size_t n_bytes = 0, n_id = strlen(job->id), size = n_id + 128;
    char *id = allocate(NULL, n_id + 1), *line = allocate(NULL, size);
    memcpy(id, job->id, n_id + 1);
    Request request = request_of(id);
    fusec_result *result = NULL;
    fusec_status status = compile(library, &request, text, n_text, &result);
    const void *bytes = library->bytes(result, &n_bytes);
    const char *messages = library->messages(result);
    Hash artifact = hash_of_artifact(bytes, n_bytes), said = hash_of(messages, strlen(messages));
    int n = snprintf(line, size, "%s %d %zu %016" PRIx64 "%016" PRIx64 " %016" PRIx64 "\n", job->id,
                     (int)status, n_bytes, artifact.a, artifact.b, said.a);
    write_line(results, line, (size_t)n);
    library->free(result);
    free(line);
    free(id);
}

/* The jobs of one file, in a process of its own; tells of each that is done. */
static void run_child(const Library *library, const Job *jobs, size_t n, int results, int done) {
    size_t n_text;
    char *text = read_file(jobs->file, &n_text);
    for (size_t i = 0; i < n; i++) {
        alarm(SECONDS);
        run_job(library, &jobs[i], text, n_text, results);
        if (write(done, "", 1) != 1) _exit(2);
    }
    _exit(0);
}

/* Returns how many jobs the child has done, and how it ended. */
static size_t watch_child(pid_t child, int done, int *status) {
    char bytes[64];
    size_t n_done = 0;
    for (ssize_t n; (n = read(done, bytes, sizeof bytes)) > 0;) n_done += (size_t)n;
    close(done);
    if (waitpid(child, status, 0) != child) fail("a process", "is not there any more");
    return n_done;
}

/* A job that ended the process. What the machine may have done has no result. */
static bool note_crash(const Job *job, int status, int results) {
    int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (!number || number == SIGKILL || number == SIGALRM) {
        fprintf(stderr, "same_compile: no result: %s (%s)\n", job->id,
                number == SIGALRM ? "does not finish" : "killed");
        return false;
    }
    size_t size = strlen(job->id) + 64;
    char *line = allocate(NULL, size);
    int n = snprintf(line, size, "%s signal-%d 0 0 0\n", job->id, number);
    write_line(results, line, (size_t)n);
    free(line);
    return true;
}

/* The jobs of one file; whether each has a result. */
static bool run_group(const Library *library, const Job *jobs, size_t n, int results) {
    bool is_whole = true;
    for (size_t begin = 0; begin < n; begin++) {
        int ends[2], status = 0;
        if (pipe(ends)) fail("a pipe", "cannot be made");
        pid_t child = fork();
        if (child < 0) fail("a process", "cannot be made");
        if (child == 0) run_child(library, jobs + begin, n - begin, results, ends[1]);
        close(ends[1]);
        begin += watch_child(child, ends[0], &status);
        if (begin < n) is_whole &= note_crash(&jobs[begin], status, results);
    }
    return is_whole;
}

static size_t group_end(const Jobs *jobs, size_t begin) {
    size_t end = begin + 1;
    while (end < jobs->n && strcmp(jobs->data[end].file, jobs->data[begin].file) == 0) end++;
    return end;
}

/* Takes groups, which are numbers of first jobs, from the queue until it is empty. */
static void run_worker(const Library *library, const Jobs *jobs, int queue, int results) {
    bool is_whole = true;
    for (size_t begin; read(queue, &begin, sizeof begin) == sizeof begin;)
        is_whole &= run_group(library, jobs->data + begin, group_end(jobs, begin) - begin, results);
    _exit(is_whole ? 0 : LOST);
}

static int run_jobs(const Library *library, int n_processes, const char *path) {
    Jobs jobs = read_jobs();
    int queue[2], results = open(path, O_WRONLY | O_APPEND | O_CREAT, 0666);
    if (results < 0) fail(path, "cannot be written");
    if (pipe(queue)) fail("a pipe", "cannot be made");
    for (int i = 0; i < n_processes; i++) {
        pid_t worker = fork();
        if (worker < 0) fail("a process", "cannot be made");
        if (worker > 0) continue;
        close(queue[1]);
        run_worker(library, &jobs, queue[0], results);
    }
    close(queue[0]);
    for (size_t begin = 0; begin < jobs.n; begin = group_end(&jobs, begin))
        if (write(queue[1], &begin, sizeof begin) != sizeof begin) fail("the queue", "is closed");
    close(queue[1]);
    int worst = 0, status;
    while (wait(&status) > 0)
        if (!WIFEXITED(status) || WEXITSTATUS(status)) worst = LOST;
    return worst;
}

/* One artifact, and the targets. */

static int write_artifact(const Library *library, const char *path, const Request *request) {
    size_t n_text, n_bytes = 0;
    char *text = read_file(path, &n_text);
    fusec_result *result = NULL;
    fusec_status status = compile(library, request, text, n_text, &result);
    const void *bytes = library->bytes(result, &n_bytes);
    fputs(library->messages(result), stderr);
    if (n_bytes) fwrite(bytes, 1, n_bytes, stdout);
    library->free(result);
    free(text);
    return (int)status;
}

static int list_targets(const Library *library) {
    static const char text[] = "graph g(x: f32[8]) -> (y: f32[8]) { y = -x }\n";
    static const char *const kinds[] = {"ptx", "obj"};
    for (size_t i = 0; library->target_name(i); i++) {
        for (int k = 0; k < 2; k++) {
            Request request = {"g.g", library->target_name(i), kinds[k], "default"};
            fusec_result *result = NULL;
            if (!compile(library, &request, text, sizeof text - 1, &result))
                printf("%s %s\n", request.target, kinds[k]);
            library->free(result);
        }
    }
    return 0;
}

int main(int argc, char **argv) {
    Library library;
    if (argc == 3 && strcmp(argv[2], "--targets") == 0) {
        library = load(argv[1]);
        return list_targets(&library);
    }
    if (argc == 4 && atoi(argv[2]) > 0 && atoi(argv[2]) <= MAX_PROCESSES) {
        library = load(argv[1]);
        return run_jobs(&library, atoi(argv[2]), argv[3]);
    }
    if (argc == 7) {
        library = load(argv[1]);
        Request request = {argv[3], argv[4], argv[5], argv[6]};
        return write_artifact(&library, argv[2], &request);
    }
    fputs("usage: same_compile LIBRARY --targets\n"
          "       same_compile LIBRARY N_PROCESSES RESULTS <JOBS\n"
          "       same_compile LIBRARY FILE NAME TARGET KIND OPTION\n",
          stderr);
    return 2;
}
