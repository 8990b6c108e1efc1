/* Cubins on disk and cubins in artifacts, over the fake driver. */
#include "../fake/rt_rig.h"

#include "code/cubin_cache.h"
#include "host/mem.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

Test(rt_cache, sha256_of_the_standards_examples) {
    static const struct {
        const char *text, *digest;
        int n_times;
    } cases[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", 1},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", 1},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1", 1},
        {"aaaaaaaaaa", "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0", 100000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Sha256 hash;
        uint8_t digest[SHA256_BYTES];
        char text[2 * SHA256_BYTES + 1];
        sha256_begin(&hash);
        for (int n = 0; n < cases[i].n_times; n++) {
            sha256_add(&hash, cases[i].text, strlen(cases[i].text));
        }
        sha256_end(&hash, digest);
        for (int k = 0; k < SHA256_BYTES; k++) {
            snprintf(text + 2 * k, 3, "%02x", digest[k]);
        }
        cr_expect_str_eq(text, cases[i].digest);
    }
}

/* The cubins in `folder`; the first one's path is written to `path`. */
static int count_files(const char *folder, char path[512], const char *suffix) {
    int n = 0;
    DIR *entries = opendir(folder);
    for (struct dirent *at; entries && (at = readdir(entries));) {
        const char *dot = strrchr(at->d_name, '.');
        if (at->d_name[0] == '.' || (suffix && (!dot || strcmp(dot, suffix) != 0))) {
            continue;
        }
        if (n++ == 0 && path) {
            snprintf(path, 512, "%s/%s", folder, at->d_name);
        }
    }
    if (entries) {
        closedir(entries);
    }
    return n;
}

static frt_program_options cached_options(const char *folder) {
    frt_program_options options = rt_options();
    options.cache = true;
    options.cache_dir = folder;
    return options;
}

typedef enum { COMPILED, COMPILED_AND_KEPT, CACHED } Way;

/* Opens a program, runs it, and checks how its code came. */
static void expect_load(const frt_program_options *options, Way way, const char *when) {
    RtRig rig;
    FRT_INFO(frt_load_info, load);
    fake_cuda.n_calls = 0;
    cr_assert_eq(rt_open_program(&rig, rt_manifest, options), FRT_OK, "%s: %s", when,
                 rig.err.message);
    cr_assert_eq(frt_program_get_load(rig.program, &load), FRT_OK);
    cr_expect_eq(load.is_compiled, way != CACHED, "%s: compiled", when);
    cr_expect_eq(load.is_cached, way != COMPILED, "%s: cached", when);
    cr_expect(load.ms > 0);
    cr_expect_eq(fake_cuda_count("cuLinkComplete"), way != CACHED && options->cache, "%s", when);
    bool is_ptx = strncmp(fake_cuda.image_text, FAKE_CUBIN, sizeof FAKE_CUBIN - 1) != 0;
    cr_expect_eq(is_ptx, !options->cache, "%s: `%s` was loaded", when, fake_cuda.image_text);
    cr_assert_eq(frt_program_set_param(rig.program, "w", rt_weights, 16, &rig.err), FRT_OK);
    cr_assert_eq(frt_exec_create(rig.program, &rig.exec, &rig.err), FRT_OK);
    cr_assert_eq(rt_bind(&rig, 3), FRT_OK);
    cr_assert_eq(frt_run(rig.exec, NULL, &rig.err), FRT_OK);
    rt_expect_y(&rig, 3);
    rt_close_rig(&rig);
    rt_expect_nothing_held(when);
}

Test(rt_cache, the_second_load_compiles_nothing) {
    char *folder = rt_folder_make(), deep[128], path[512];
    fake_cuda_reset();
    rt_add_kernels();
    snprintf(deep, sizeof deep, "%s/a/b", folder);
    frt_program_options options = cached_options(deep);
    expect_load(&options, COMPILED_AND_KEPT, "first");
    expect_load(&options, CACHED, "second");
    cr_expect_eq(count_files(deep, path, NULL), 1, "one file and nothing beside it");
    struct stat info;
    cr_assert_eq(stat(path, &info), 0);
    cr_expect_eq(info.st_mode & 077, 0, "it is nobody else's");
    options.cache = false;
    expect_load(&options, COMPILED, "not asked for");
    options.cache = true;
    cr_assert_eq(setenv("FUSERT_CACHE", "off", 1), 0);
    options.cache_dir = NULL;
    RtRig rig;
    cr_assert_eq(rt_open_program(&rig, rt_manifest, &options), FRT_OK);
    cr_expect(strncmp(fake_cuda.image_text, ".version", 8) == 0, "turned off from outside");
    rt_close_rig(&rig);
    rt_folder_remove(folder);
}

/* What was needed with what makes no difference to the names. */
Test(rt_cache, functions_are_kept_one_by_one) {
    char *folder = rt_folder_make();
    frt_program_options options = cached_options(folder);
    fake_cuda_reset();
    rt_add_kernels();
    for (int i = 0; i < 3; i++) {
        RtRig rig;
        FRT_INFO(frt_load_info, load);
        options.load_all = i > 0;
        cr_assert_eq(rt_open_code(&rig, rt_manifest, rt_cut_ptx, &options), FRT_OK, "%s",
                     rig.err.message);
        cr_assert_eq(frt_program_set_param(rig.program, "w", rt_weights, 16, &rig.err), FRT_OK);
        cr_assert_eq(frt_exec_create(rig.program, &rig.exec, &rig.err), FRT_OK);
        cr_assert_eq(rt_bind(&rig, 3), FRT_OK);
        cr_assert_eq(frt_run(rig.exec, NULL, &rig.err), FRT_OK, "%s", rig.err.message);
        rt_expect_y(&rig, 3);
        cr_assert_eq(frt_program_get_load(rig.program, &load), FRT_OK);
        cr_expect(load.is_cached && load.is_compiled == (i < 2), "round %d", i);
        cr_expect_eq(load.n_loaded, i ? 4 : 3);
        cr_expect_eq(count_files(folder, NULL, ".cubin"), i ? 4 : 3);
        cr_expect_eq(fake_cuda_count("cuLinkComplete"), i ? 4 : 3, "round %d", i);
        rt_close_rig(&rig);
    }
    rt_expect_nothing_held("after functions");
    rt_folder_remove(folder);
}

/* Whatever the cubin depends on is part of its name. */
Test(rt_cache, another_driver_device_or_ptx_is_another_cubin) {
    char *folder = rt_folder_make();
    fake_cuda_reset();
    rt_add_kernels();
    frt_program_options options = cached_options(folder);
    expect_load(&options, COMPILED_AND_KEPT, "first");
    fake_cuda.driver_version = 13000;
    expect_load(&options, COMPILED_AND_KEPT, "another driver");
    fake_cuda.minor = 1;
    expect_load(&options, COMPILED_AND_KEPT, "another device");
    expect_load(&options, CACHED, "the same device");
    CubinKey a = cubin_cache_key("x", "ab", 2), b = cubin_cache_key("xa", "b", 1);
    cr_expect(memcmp(&a, &b, sizeof a) != 0, "the two parts are apart");
    cr_expect_eq(count_files(folder, NULL, ".cubin"), 3);
    rt_folder_remove(folder);
}

static char *read_file(const char *path, size_t *n_bytes) {
    FILE *file = fopen(path, "rb");
    cr_assert_not_null(file);
    fseek(file, 0, SEEK_END);
    *n_bytes = (size_t)ftell(file);
    rewind(file);
    char *bytes = malloc(*n_bytes + 1);
    cr_assert_eq(fread(bytes, 1, *n_bytes, file), *n_bytes);
    fclose(file);
    return bytes;
}

/* Every byte flipped, every length cut: never used, always replaced. */
Test(rt_cache, a_damaged_file_is_made_again, .timeout = 60) {
    char *folder = rt_folder_make(), path[512];
    size_t n_bytes;
    fake_cuda_reset();
    rt_add_kernels();
    frt_program_options options = cached_options(folder);
    expect_load(&options, COMPILED_AND_KEPT, "first");
    cr_assert_eq(count_files(folder, path, ".cubin"), 1);
    char *bytes = read_file(path, &n_bytes);
    for (size_t i = 0; i < n_bytes; i++) {
        char when[40];
        bool is_unused = i >= 60 && i < 64;
        snprintf(when, sizeof when, "byte %zu", i);
        bytes[i] ^= 0x20;
        rt_file_write(path, bytes, n_bytes);
        chmod(path, 0600);
        expect_load(&options, is_unused ? CACHED : COMPILED_AND_KEPT, when);
        bytes[i] ^= 0x20;
        expect_load(&options, CACHED, when);
        rt_file_write(path, bytes, i);
        expect_load(&options, COMPILED_AND_KEPT, when);
    }
    rt_file_write(path, bytes, n_bytes + 1);
    expect_load(&options, COMPILED_AND_KEPT, "a byte too many");
    free(bytes);
    rt_folder_remove(folder);
}

/* What others could have written is no code of ours. */
Test(rt_cache, files_of_another_kind_are_not_read) {
    char *folder = rt_folder_make(), path[512], other[600];
    size_t n_bytes;
    fake_cuda_reset();
    rt_add_kernels();
    frt_program_options options = cached_options(folder);
    expect_load(&options, COMPILED_AND_KEPT, "first");
    cr_assert_eq(count_files(folder, path, ".cubin"), 1);
    chmod(path, 0622);
    expect_load(&options, COMPILED_AND_KEPT, "anybody may write it");
    expect_load(&options, CACHED, "it was replaced");
    char *bytes = read_file(path, &n_bytes);
    snprintf(other, sizeof other, "%s/elsewhere", folder);
    rt_file_write(other, bytes, n_bytes);
    unlink(path);
    cr_assert_eq(symlink(other, path), 0);
    expect_load(&options, COMPILED_AND_KEPT, "a link");
    unlink(path);
    cr_assert_eq(mkfifo(path, 0600), 0);
    expect_load(&options, COMPILED_AND_KEPT, "a pipe");
    unlink(path);
    cr_assert_eq(mkdir(path, 0700), 0);
    expect_load(&options, COMPILED, "a folder in its place");
    free(bytes);
    rt_folder_remove(folder);
}

/* A cubin that the driver refuses is dropped. */
Test(rt_cache, a_refused_cubin_is_made_again) {
    char *folder = rt_folder_make();
    RtRig rig;
    FRT_INFO(frt_load_info, load);
    fake_cuda_reset();
    rt_add_kernels();
    frt_program_options options = cached_options(folder);
    expect_load(&options, COMPILED_AND_KEPT, "first");
    for (long n = 1; !fake_cuda.failed_in || strcmp(fake_cuda.failed_in, "cuModuleLoadDataEx");
         n++) {
        cr_assert_lt(n, 50);
        fake_cuda_reset();
        fake_cuda.fail_at = n;
        fake_cuda.fail_code = 209;
        frt_status status = rt_open_program(&rig, rt_manifest, &options);
        if (status == FRT_OK) frt_program_get_load(rig.program, &load);
        rt_close_rig(&rig);
    }
    cr_expect(load.is_compiled && load.is_cached);
    fake_cuda_reset();
    expect_load(&options, CACHED, "afterwards");
    rt_folder_remove(folder);
}

Test(rt_cache, a_folder_that_cannot_be_used_fails_nothing) {
    char *folder = rt_folder_make(), path[128], *long_path = malloc(5000);
    fake_cuda_reset();
    rt_add_kernels();
    snprintf(path, sizeof path, "%s/file", folder);
    rt_file_write(path, "x", 1);
    strncat(path, "/below", sizeof path - strlen(path) - 1);
    frt_program_options options = cached_options(path);
    expect_load(&options, COMPILED, "below a file");
    options.cache_dir = "/proc/nowhere";
    expect_load(&options, COMPILED, "where nothing can be made");
    memset(long_path, 'a', 4999);
    long_path[4999] = '\0';
    options.cache_dir = long_path;
    RtRig rig;
    cr_expect_eq(rt_open_program(&rig, rt_manifest, &options), FRT_OK, "a path too long");
    rt_close_rig(&rig);
    free(long_path);
    rt_folder_remove(folder);
}

static void expect_place(const char *variable, const char *value, const char *folder) {
    CubinCache cache;
    frt_program_options options = FRT_PROGRAM_OPTIONS_INIT;
    options.cache = true;
    if (value) {
        setenv(variable, value, 1);
    } else {
        unsetenv(variable);
    }
    cubin_cache_open(&cache, &options);
    cr_expect_eq(cache.is_on, folder != NULL, "%s=%s", variable, value);
    if (folder) {
        cr_expect_str_eq(cache.folder, folder);
    }
}

Test(rt_cache, the_folder_is_where_the_environment_says) {
    CubinCache cache;
    frt_program_options options = FRT_PROGRAM_OPTIONS_INIT;
    options.cache = true;
    unsetenv("XDG_CACHE_HOME");
    unsetenv("FUSERT_CACHE");
    expect_place("HOME", "/home/me", "/home/me/.cache/fusert");
    expect_place("XDG_CACHE_HOME", "relative", "/home/me/.cache/fusert");
    expect_place("XDG_CACHE_HOME", "/x", "/x/fusert");
    expect_place("FUSERT_CACHE", "/here", "/here");
    options.cache_dir = "/by/option";
    cubin_cache_open(&cache, &options);
    cr_expect(cache.is_on && strcmp(cache.folder, "/by/option") == 0, "the caller knows better");
    cr_expect_eq(cache.max_bytes, (size_t)CUBIN_CACHE_BYTES);
    expect_place("FUSERT_CACHE", "off", NULL);
    cubin_cache_open(&cache, &options);
    cr_expect(!cache.is_on, "off is off");
    unsetenv("FUSERT_CACHE");
    options.cache = false;
    cubin_cache_open(&cache, &options);
    cr_expect(!cache.is_on, "only if asked");
    expect_place("FUSERT_CACHE", "", "/x/fusert");
    expect_place("XDG_CACHE_HOME", NULL, "/home/me/.cache/fusert");
    expect_place("HOME", NULL, NULL);
}

static CubinCache cache_at(const char *folder, size_t max_bytes) {
    frt_program_options options = FRT_PROGRAM_OPTIONS_INIT;
    CubinCache cache;
    options.cache = true;
    options.cache_dir = folder;
    options.cache_bytes = max_bytes;
    cubin_cache_open(&cache, &options);
    return cache;
}

static CubinKey key_of(int i) {
    return cubin_cache_key("test", &i, sizeof i);
}

static bool has(const CubinCache *cache, int i) {
    size_t n_bytes = 0;
    CubinKey key = key_of(i);
    unsigned char *cubin = cubin_cache_get(cache, &key, &n_bytes);
    bool is_right = cubin && n_bytes > 0 && (uintptr_t)cubin % FRT_ALIGNMENT == 0;
    for (size_t k = 0; is_right && k < n_bytes; k++) {
        is_right = cubin[k] == (unsigned char)i;
    }
    cr_expect(!cubin || is_right, "cubin %d is not what was put there", i);
    mem_free(cubin);
    return cubin != NULL;
}

static bool put(const CubinCache *cache, int i, size_t n_bytes) {
    char *cubin = malloc(n_bytes);
    memset(cubin, i, n_bytes);
    CubinKey key = key_of(i);
    bool is_kept = cubin_cache_put(cache, &key, cubin, n_bytes);
    free(cubin);
    return is_kept;
}

/* So that files made in one tick of the clock have an order. */
static void set_age(const CubinCache *cache, int i, int seconds) {
    char path[1200];
    CubinKey key = key_of(i);
    struct timespec times[2];
    clock_gettime(CLOCK_REALTIME, &times[0]);
    times[0].tv_sec -= seconds;
    times[1] = times[0];
    int n = snprintf(path, sizeof path, "%s/", cache->folder);
    for (int k = 0; k < SHA256_BYTES; k++) {
        n += snprintf(path + n, sizeof path - (size_t)n, "%02x", key.bytes[k]);
    }
    snprintf(path + n, sizeof path - (size_t)n, ".cubin");
    cr_assert_eq(utimensat(AT_FDCWD, path, times, 0), 0);
}

Test(rt_cache, the_least_used_goes_first) {
    char *folder = rt_folder_make(), path[128];
    CubinCache cache = cache_at(folder, 4 * 1064);
    snprintf(path, sizeof path, "%s/README", folder);
    rt_file_write(path, "mine", 4);
    snprintf(path, sizeof path, "%s/new-left00", folder);
    rt_file_write(path, "behind", 6);
    struct timespec long_ago[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    cr_assert_eq(utimensat(AT_FDCWD, path, long_ago, 0), 0);
    for (int i = 0; i < 4; i++) {
        cr_expect(put(&cache, i, 1000), "%d", i);
        set_age(&cache, i, 100 - i);
    }
    cr_expect(access(path, F_OK) != 0, "what a process left behind is removed");
    cr_expect(has(&cache, 0), "and is used now");
    cr_expect(put(&cache, 4, 1000));
    cr_expect(!has(&cache, 1), "the one that was not used for the longest time");
    cr_expect(has(&cache, 0) && has(&cache, 2) && has(&cache, 3) && has(&cache, 4));
    cr_expect(!put(&cache, 5, 5000), "larger than all may be");
    cr_expect(has(&cache, 4), "nothing gives way to what is not kept");
    snprintf(path, sizeof path, "%s/README", folder);
    cr_expect_eq(access(path, F_OK), 0, "what is no cubin is not touched");
    rt_folder_remove(folder);
}

/* Processes that write, read and evict at the same time see whole cubins or none. */
Test(rt_cache, processes_share_a_folder, .timeout = 60) {
    enum { N_PROCESSES = 6, N_ROUNDS = 150, N_KEYS = 7 };
    char *folder = rt_folder_make();
    pid_t children[N_PROCESSES];
    for (int p = 0; p < N_PROCESSES; p++) {
        children[p] = fork();
        if (children[p] == 0) {
            CubinCache cache = cache_at(folder, 4 * 5064);
            int n_bad = 0;
            for (int i = 0; i < N_ROUNDS; i++) {
                int which = (i * (p + 1)) % N_KEYS;
                size_t n_bytes = 0;
                CubinKey key = key_of(which);
                unsigned char *cubin = cubin_cache_get(&cache, &key, &n_bytes);
                for (size_t k = 0; cubin && k < n_bytes; k++) n_bad += cubin[k] != which;
                n_bad += cubin && n_bytes != 5000;
                mem_free(cubin);
                n_bad += !put(&cache, which, 5000);
            }
            _exit(n_bad ? 1 : 0);
        }
    }
    for (int p = 0; p < N_PROCESSES; p++) {
        int status = -1;
        cr_assert_eq(waitpid(children[p], &status, 0), children[p]);
        cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "process %d", p);
    }
    CubinCache cache = cache_at(folder, 4 * 5064);
    cr_expect(put(&cache, 0, 5000) && has(&cache, 0));
    cr_expect_leq(count_files(folder, NULL, NULL), 4, "bounded, and no unfinished file");
    rt_folder_remove(folder);
}

/* Every driver call and every allocation of a load, failed once: the load fails as it does without
 * a cache, or not at all, and the next one is whole. */
Test(rt_cache, no_failure_of_the_cache_fails_a_load, .timeout = 60) {
    char *folder = rt_folder_make();
    rt_add_kernels();
    for (int kind = 0; kind < 2; kind++) {
        bool has_failed = true;
        for (long n = 1; has_failed; n++) {
            RtRig rig;
            char when[64];
            char path[512];
            frt_program_options options = cached_options(folder);
            fake_cuda_reset();
            if (kind == 0) {
                fake_cuda.fail_at = n;
                fake_cuda.fail_code = 999;
            } else {
                fake_mem_fail_at(n, 0);
            }
            frt_status status = rt_open_program(&rig, rt_manifest, &options);
            has_failed = kind == 0 ? fake_cuda.has_failed : fake_mem_failed();
            fake_cuda.fail_at = 0;
            fake_mem_fail_at(0, 0);
            snprintf(when, sizeof when, "%s %ld", kind ? "allocation" : "call", n);
            bool is_caches = kind == 0 && has_failed &&
                             (strncmp(fake_cuda.failed_in, "cuLink", 6) == 0 ||
                              strcmp(fake_cuda.failed_in, "cuModuleLoadDataEx") == 0);
            cr_expect(status == FRT_OK || (has_failed && !is_caches), "%s: %s", when,
                      rig.err.message);
            rt_close_rig(&rig);
            rt_expect_nothing_held(when);
            cr_expect_eq(rt_open_program(&rig, rt_manifest, &options), FRT_OK, "%s", when);
            rt_close_rig(&rig);
            if (count_files(folder, path, ".cubin") == 1 && n % 2) unlink(path);
        }
    }
    rt_folder_remove(folder);
}

/* A cubin may lie anywhere in the artifact; the driver gets it aligned and as it is. */
Test(rt_cache, an_artifact_with_a_cubin_is_loaded_as_it_is) {
    char *folder = rt_folder_make();
    Artifact object = artifact_object(rt_manifest, "int unused;", 0);
    object.bytes[18] = (char)190; /* EM_CUDA */
    object.bytes[19] = 0;
    rt_add_kernels();
    for (int shift = 0; shift < 4; shift++) {
        RtRig rig = {.err = FRT_ERROR_INIT, .x = rt_x_storage, .y = rt_y_storage};
        FRT_INFO(frt_load_info, load);
        char source[16], line[64];
        snprintf(source, sizeof source, "source %.*sm.g", shift, "aaaa");
        char *manifest = text_replace(rt_manifest, "source m.g", source);
        snprintf(line, sizeof line, "//@ payload %zu\n", object.n_bytes);
        size_t n_head = strlen(manifest) + strlen(line);
        Artifact whole = {malloc(n_head + object.n_bytes), n_head + object.n_bytes};
        memcpy(whole.bytes, manifest, strlen(manifest));
        memcpy(whole.bytes + strlen(manifest), line, strlen(line));
        memcpy(whole.bytes + n_head, object.bytes, object.n_bytes);
        artifact_stamp(&whole);
        frt_program_options options = cached_options(folder);
        fake_cuda_reset();
        fake_cuda.major = 8;
        cr_assert_eq(frt_module_load_memory(whole.bytes, whole.n_bytes, &rig.module, &rig.err),
                     FRT_OK, "%s", rig.err.message);
        cr_assert_eq(frt_program_create(rig.module, NULL, &options, &rig.program, &rig.err), FRT_OK,
                     "%s", rig.err.message);
        cr_expect_eq((uintptr_t)fake_cuda.image % 8, 0);
        cr_expect(memcmp(fake_cuda.image_text, "\177ELF", 4) == 0);
        frt_program_get_load(rig.program, &load);
        cr_expect(!load.is_compiled && !load.is_cached);
        rt_close_rig(&rig);
        rt_expect_nothing_held("after a cubin");
        artifact_free(&whole);
        free(manifest);
    }
    cr_expect_eq(count_files(folder, NULL, NULL), 0, "there is nothing to keep");
    artifact_free(&object);
    rt_folder_remove(folder);
}

Test(rt_cache, an_artifact_that_is_no_file_is_refused_and_not_waited_for, .timeout = 20) {
    frt_error err = FRT_ERROR_INIT;
    frt_module *module = NULL;
    char *folder = rt_folder_make(), path[128];
    snprintf(path, sizeof path, "%s/pipe", folder);
    cr_assert_eq(mkfifo(path, 0600), 0);
    const char *const paths[] = {path, folder, "/dev/zero"};
    for (int i = 0; i < 3; i++) {
        cr_expect_eq(frt_module_load_file(paths[i], &module, &err), FRT_E_FILE);
        cr_expect(strstr(err.message, "no regular file"), "%s", err.message);
    }
    rt_folder_remove(folder);
}
