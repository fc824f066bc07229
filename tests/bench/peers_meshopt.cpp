// meshopt_simplify with its border locked: peers_meshopt MESH.obj FACES REPEAT OUT.obj; prints "ms X cpu Y vertices N faces N".
#include <meshoptimizer.h>
#include <cfloat>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

int main(int argc, char **argv)
{
    std::vector<float> xyz;
    std::vector<unsigned> index, out;
    char line[512];
    FILE *f = argc > 4 ? fopen(argv[1], "r") : nullptr;
    double best = 0, cpu = 0;
    size_t n = 0;

    if (!f)
        return 1;
    while (fgets(line, sizeof(line), f)) {
        float a[3];
        unsigned b[3];
        if (sscanf(line, "v %f %f %f", a, a + 1, a + 2) == 3)
            xyz.insert(xyz.end(), a, a + 3);
        else if (sscanf(line, "f %u%*[^ ] %u%*[^ ] %u", b, b + 1, b + 2) == 3 || sscanf(line, "f %u %u %u", b, b + 1, b + 2) == 3)
            for (unsigned k : b)
                index.push_back(k - 1);
    }
    fclose(f);
    out.resize(index.size());
    for (int i = 0; i <= atoi(argv[3]); i++) {
        std::clock_t c0 = std::clock();
        auto t0 = std::chrono::steady_clock::now();
        n = meshopt_simplify(out.data(), index.data(), index.size(), xyz.data(), xyz.size() / 3, 12, 3 * strtoul(argv[2], nullptr, 10),
                             FLT_MAX, meshopt_SimplifyLockBorder, nullptr);
        double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - t0).count();
        double c1 = double(std::clock() - c0) * 1e3 / CLOCKS_PER_SEC;
        best = i == 0 || ms < best ? ms : best;
        cpu = i == 0 || c1 < cpu ? c1 : cpu;
    }
    f = fopen(argv[4], "w");
    if (!f)
        return 1;
    for (size_t i = 0; i < xyz.size(); i += 3)
        fprintf(f, "v %.9g %.9g %.9g\n", xyz[i], xyz[i + 1], xyz[i + 2]);
    for (size_t i = 0; i < n; i += 3)
        fprintf(f, "f %u %u %u\n", out[i] + 1, out[i + 1] + 1, out[i + 2] + 1);
    fclose(f);
    printf("ms %.4f cpu %.4f vertices %zu faces %zu\n", best, cpu, xyz.size() / 3, n / 3);
    return 0;
}
