/* The compiled kernels of whole plays (planner/arena/kernel*.py, planner/brain/kernel.py), word for word in C, for
 * arena_speed.py to measure them by. Every capital name is a number or a table that it passes with -D or in `tables`. */
#include <stdint.h>
#include <string.h>

typedef int64_t whole;
typedef uint64_t bits;
typedef const uint8_t *bytes;

typedef struct {
    bytes lookup;
    const whole *heading_x, *heading_y, *damage, *spread, *drives, *loaded, *kind, *direct, *speed, *either_way, *care, *round;
} tables;

static whole least(whole a, whole b) { return a < b ? a : b; }
static whole most(whole a, whole b) { return a > b ? a : b; }
static whole size(whole a) { return a < 0 ? -a : a; }

static bits mix(bits z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}
static bits key(whole seed, whole stream) {
    return mix(mix((bits)seed + 0x9E3779B97F4A7C15u) + (bits)stream * 0xD1B54A32D192ED03u);
}
static whole draw(bits keys, whole tick, whole lane) {
    return (whole)(mix(keys + (bits)tick * 0x8CB92BA72F3D8DD7u + (bits)lane * 0xAEF17502108EF2D9u) >> 32);
}
static whole look(whole dx, whole dy) {
    whole half = 1 << (LOOK_SHIFT - 1);
    return ((dy + half) >> LOOK_SHIFT) * LOOK_ROW + ((dx + half) >> LOOK_SHIFT) + LOOK_MIDDLE;
}

static void begin_duel(whole *c, const tables *t, whole now) {
    c[DUEL] += 1;
    c[BORN] = now;
    c[OVER] = 0;
    whole duel = c[DUEL], where = c[MAP];
    bits starts = key(c[SEED], (duel >> 1) * 8);
    for (int me = 0; me < 2; me++) {
        whole side = ((c[SIDE] + duel) & 1) ^ me;
        whole cell = t->lookup[STARTS + 8 * where + (draw(starts, 0, side) & 7)];
        if (side == 1) cell = 255 - cell;
        c[X + me] = (cell & 15) * CELL + CELL / 2;
        c[Y + me] = (cell >> 4) * CELL + CELL / 2;
        c[HULL + me] = c[GUN + me] = side == 1 ? 192 : 64;
        c[HEALTH + me] = FULL;
        c[LIVE + me] = c[VX + me] = c[VY + me] = c[RELOAD + me] = c[POWER + me] = 0;
    }
    whole spot = draw(key(c[SEED], duel * 8), 1, 0);
    c[PACK_CELL] = t->lookup[PACKS + 2 * where + (spot & 1)];
    c[POWER_CELL] = t->lookup[POWERS + 2 * where + (spot >> 1 & 1)];
    c[PACK_WAIT] = PACK_FIRST;
    c[POWER_WAIT] = POWER_FIRST;
}

static void begin_block(whole *c, const tables *t, whole now) {
    if (!c[OVER] && now - c[BORN] >= DUEL_LIMIT) {
        c[DRAWN] += 1;
        c[OVER] = 1;
    }
    if (c[OVER]) begin_duel(c, t, now);
    whole side = (c[SIDE] + c[DUEL]) & 1, age = now - c[BORN];
    bits drifts = key(c[SEED], c[DUEL] * 8 + 1), strays = key(c[SEED], c[DUEL] * 8 + 2);
    for (int me = 0; me < 2; me++) {
        c[DRIFT + me] = 2 * (draw(drifts, age >> 4, side ^ me) & 1) - 1;
        for (int i = 0; i < BLOCK; i++) c[STRAY + 2 * i + me] = draw(strays, age + i, side ^ me) & 511;
    }
}

static whole turn(whole *c, whole angle, whole wanted, whole limit) {
    whole off = ((wanted - c[angle] + 128) & 255) - 128, turned = least(most(off, -limit), limit);
    c[angle] = (c[angle] + turned) & 255;
    return off - turned;
}

static void drive(whole *c, const tables *t, int me, whole speed) {
    bytes go = t->lookup + GO + (c[MAP] << 12);
    whole x = c[X + me], y = c[Y + me];
    whole vx = t->heading_x[c[HULL + me]] * speed, vy = t->heading_y[c[HULL + me]] * speed;
    vx *= go[(y >> FINE_SHIFT << 6) + ((x + vx) >> FINE_SHIFT)];
    vy *= go[((y + vy) >> FINE_SHIFT << 6) + ((x + vx) >> FINE_SHIFT)];
    c[VX + me] = vx;
    c[VY + me] = vy;
}

static void keep_apart(whole *c) {
    whole dx = c[X] - c[X + 1], dy = c[Y] - c[Y + 1];
    whole apart = most(size(dx + c[VX] - c[VX + 1]), size(dy + c[VY] - c[VY + 1]));
    if (apart < TANK_GAP && apart < most(size(dx), size(dy))) c[VX] = c[VX + 1] = c[VY] = c[VY + 1] = 0;
    for (int me = 0; me < 2; me++) {
        c[X + me] += c[VX + me];
        c[Y + me] += c[VY + me];
    }
}

static int in_wall(whole *c, const tables *t, whole x, whole y) {
    return t->lookup[SOLID + (c[MAP] << 8) + (y >> SHIFT << 4) + (x >> SHIFT)];
}

static int fly(whole *c, const tables *t, int me) {
    whole cos = c[SHELL_VX + me], sin = c[SHELL_VY + me], x = c[SHELL_X + me], y = c[SHELL_Y + me];
    whole step_x = cos * (SHELL_SPEED / 2), step_y = sin * (SHELL_SPEED / 2);
    c[SHELL_X + me] = x + 2 * step_x;
    c[SHELL_Y + me] = y + 2 * step_y;
    if (!c[LIVE + me]) return 0;
    whole dx = (c[X + 1 - me] - x) >> 5, dy = (c[Y + 1 - me] - y) >> 5, ahead = (dx * cos + dy * sin) >> 12;
    int near_wall = in_wall(c, t, x + step_x, y + step_y);
    whole reach = near_wall ? SHELL_SPEED * 64 : SHELL_SPEED * 128;
    int hit = size((dx * sin - dy * cos) >> 12) <= SHELL_RADIUS && -1024 <= ahead && ahead <= reach;
    if (hit || near_wall || in_wall(c, t, x + 2 * step_x, y + 2 * step_y)) c[LIVE + me] = 0;
    return hit;
}

static void hurt(whole *c, const tables *t, int hit_0, int hit_1) {
    if (hit_0) c[HEALTH + 1] -= t->damage[((c[SHELL_HEADING] - c[HULL + 1]) & 255) + c[SHELL_POWER]];
    if (hit_1) c[HEALTH] -= t->damage[((c[SHELL_HEADING + 1] - c[HULL]) & 255) + c[SHELL_POWER + 1]];
    int dead_0 = c[HEALTH] <= 0, dead_1 = c[HEALTH + 1] <= 0;
    if (dead_0 || dead_1) {
        c[OVER] = 1;
        c[dead_0 ? dead_1 ? DRAWN : WON + 1 : WON] += 1;
    }
}

static void fire(whole *c, const tables *t, int me, whole now) {
    whole chance = c[STRAY + 2 * (now % BLOCK) + me], moving = c[VX + me] | c[VY + me] ? 64 : 0;
    whole heading = (c[GUN + me] + t->spread[(chance & 63) + moving]) & 255;
    c[LIVE + me] = 1;
    c[SHELL_X + me] = c[X + me];
    c[SHELL_Y + me] = c[Y + me];
    c[SHELL_HEADING + me] = heading;
    c[SHELL_VX + me] = t->heading_x[heading];
    c[SHELL_VY + me] = t->heading_y[heading];
    c[SHELL_POWER + me] = c[POWER + me] > 0 ? 256 : 0;
    c[RELOAD + me] = LOADS + (chance >> 6 & LOADS_MORE);
}

static void pick_up(whole *c) {
    whole cell[2], pack = c[PACK_CELL], power = c[POWER_CELL];
    for (int me = 0; me < 2; me++) cell[me] = (c[Y + me] >> SHIFT << 4) + (c[X + me] >> SHIFT);
    if (!c[PACK_WAIT] && (cell[0] == pack || cell[1] == pack)) {
        for (int me = 0; me < 2; me++)
            if (cell[me] == pack) c[HEALTH + me] = least(c[HEALTH + me] + PACK_HEALS, FULL);
        c[PACK_WAIT] = PACK_AGAIN;
        c[PACK_CELL] = 255 - pack;
    }
    if (!c[POWER_WAIT] && (cell[0] == power || cell[1] == power)) {
        for (int me = 0; me < 2; me++)
            if (cell[me] == power) c[POWER + me] = POWER_LASTS;
        c[POWER_WAIT] = POWER_AGAIN;
        c[POWER_CELL] = 255 - power;
    }
}

static void tick(whole *c, const tables *t, whole now) {
    for (int me = 0; me < 2; me++) {
        whole off = turn(c, HULL + me, c[HEADING + me], HULL_TURN);
        drive(c, t, me, c[SPEED + me] * t->drives[off & 255]);
    }
    keep_apart(c);
    int fires_0 = size(turn(c, GUN, c[AIM], GUN_TURN)) <= c[CARE];
    int fires_1 = size(turn(c, GUN + 1, c[AIM + 1], GUN_TURN)) <= c[CARE + 1];
    for (int me = 0; me < 2; me++) {
        c[RELOAD + me] = most(c[RELOAD + me] - 1, 0);
        c[POWER + me] = most(c[POWER + me] - 1, 0);
    }
    c[PACK_WAIT] = most(c[PACK_WAIT] - 1, 0);
    c[POWER_WAIT] = most(c[POWER_WAIT] - 1, 0);
    int hit_0 = fly(c, t, 0), hit_1 = fly(c, t, 1);
    if ((hit_0 || hit_1) && !c[OVER]) hurt(c, t, hit_0, hit_1);
    if (fires_0 && !c[RELOAD]) fire(c, t, 0, now);
    if (fires_1 && !c[RELOAD + 1]) fire(c, t, 1, now);
    if (now % THINK == 0) pick_up(c);
}

static whole nearness(const tables *t, whole here, whole cell, whole wait) {
    return wait ? 0 : most(256 - 4 * (whole)t->lookup[LENGTH + here + (cell << 8)], 0);
}

static whole incoming(whole *c, whole *w, int me) {
    int them = 1 - me;
    whole cos = c[SHELL_VX + them], sin = c[SHELL_VY + them];
    whole dx = (c[X + me] - c[SHELL_X + them]) >> 5, dy = (c[Y + me] - c[SHELL_Y + them]) >> 5;
    whole ahead = (dx * cos + dy * sin) >> 12, aside = (dx * sin - dy * cos) >> 12;
    int coming = c[LIVE + them] && ahead > 0 && size(aside) < 4096;
    w[COMING + me] = coming;
    w[ASIDE + me] = aside;
    return coming ? most(256 - (ahead >> 7), 0) : 0;
}

static void feel(whole *c, const tables *t, whole *w, int me) {
    int them = 1 - me, f = FELT + KINDS * me;
    whole here = (c[MAP] << 16) + w[SQUARE + me];
    whole to = look(c[X + them] - c[X + me], c[Y + them] - c[Y + me]);
    whole bearing = t->lookup[BEARING + to], distance = t->lookup[DISTANCE + to];
    whole sight = t->lookup[SIGHT + here + (w[SQUARE + them] << 8)];
    whole pointed = size(((c[GUN + them] - bearing) & 255) - 128);
    w[FACING + me] = bearing;
    w[AWAY + me] = distance;
    w[f] = 256;
    w[f + 1] = most(c[HEALTH + me] * (256 / FULL), 0);
    w[f + 2] = most(c[HEALTH + them] * (256 / FULL), 0);
    w[f + 3] = least(distance * 2, 256);
    w[f + 4] = sight * 256;
    w[f + 5] = t->loaded[c[RELOAD + me]];
    w[f + 6] = t->loaded[c[RELOAD + them]];
    w[f + 7] = most(256 - 8 * pointed, 0) * sight;
    w[f + 8] = incoming(c, w, me);
    w[f + 9] = nearness(t, here, c[PACK_CELL], c[PACK_WAIT]);
    w[f + 10] = nearness(t, here, c[POWER_CELL], c[POWER_WAIT]);
}

static void perceive(whole *c, const tables *t, whole *w) {
    for (int me = 0; me < 2; me++) w[SQUARE + me] = (c[Y + me] >> SHIFT << 4) + (c[X + me] >> SHIFT);
    for (int me = 0; me < 2; me++) feel(c, t, w, me);
}

static whole choose(const int32_t *weights, const whole *w, int me) {
    int32_t pull[PULLS] = {0};
    for (int k = 0; k < KINDS; k++) {
        int32_t felt = (int32_t)w[FELT + KINDS * me + k];
        for (int b = 0; b < PULLS; b++) pull[b] += weights[k * PULLS + b] * felt;
    }
    int best = 0;
    for (int b = 1; b < PULLS; b++)
        if (pull[b] > pull[best]) best = b;
    return best;
}

static int stops(whole *c, whole *w, int me, whole behaviour, int seen) {
    if (behaviour == CHARGE) return w[AWAY + me] <= CLOSE;
    if (behaviour == HEAL) return c[PACK_WAIT] > 0;
    if (behaviour == BOOST) return c[POWER_WAIT] > 0;
    return behaviour == HUNT && seen;
}

static whole goal(whole *c, const tables *t, whole *w, int me, whole behaviour) {
    int them = 1 - me;
    if (behaviour == HEAL) return c[PACK_CELL];
    if (behaviour == BOOST) return c[POWER_CELL];
    if (behaviour != FLANK) return w[SQUARE + them];
    whole x = (c[X + them] - t->heading_x[c[HULL + them]] * BEHIND) >> SHIFT;
    whole y = (c[Y + them] - t->heading_y[c[HULL + them]] * BEHIND) >> SHIFT;
    return t->lookup[FLOOR + (c[MAP] << 8) + (least(most(y, 0), 15) << 4) + least(most(x, 0), 15)];
}

static whole sideways(whole *c, const tables *t, whole *w, int me, whole behaviour) {
    if (behaviour == CIRCLE) return w[FACING + me] + c[DRIFT + me] * t->round[w[AWAY + me]];
    if (behaviour != DODGE) return w[FACING + me];
    if (w[COMING + me]) return c[SHELL_HEADING + 1 - me] + (w[ASIDE + me] >= 0 ? -64 : 64);
    return w[FACING + me] + 64 * c[DRIFT + me];
}

static whole aim(whole *c, const tables *t, whole *w, int me) {
    int them = 1 - me;
    whole flight = w[AWAY + me] * LEAD;
    whole dx = c[X + them] - c[X + me] + (c[VX + them] * flight >> 8);
    whole dy = c[Y + them] - c[Y + me] + (c[VY + them] * flight >> 8);
    return t->lookup[BEARING + look(least(most(dx, -WIDE), WIDE), least(most(dy, -WIDE), WIDE))];
}

static void give_orders(whole *c, const tables *t, whole *w, int me, whole behaviour) {
    int seen = w[FELT + KINDS * me + 4] > 0;
    whole heading = w[FACING + me], speed = t->speed[behaviour];
    if (t->direct[behaviour]) {
        heading = sideways(c, t, w, me, behaviour);
        if (size(((heading - c[HULL + me]) & 255) - 128) < t->either_way[behaviour]) {
            heading += 128;
            speed = -speed;
        }
    } else if (stops(c, w, me, behaviour, seen)) {
        speed = 0;
    } else {
        whole to = goal(c, t, w, me, behaviour);
        whole step = t->lookup[WAY + t->kind[behaviour] + (c[MAP] << 16) + (to << 8) + w[SQUARE + me]];
        if (step == w[SQUARE + me]) {
            speed = 0;
        } else {
            whole dx = ((step & 15) << SHIFT) + CELL / 2 - c[X + me], dy = (step >> 4 << SHIFT) + CELL / 2 - c[Y + me];
            heading = t->lookup[BEARING + look(dx, dy)];
        }
    }
    c[HEADING + me] = heading;
    c[SPEED + me] = speed;
    c[AIM + me] = aim(c, t, w, me);
    c[CARE + me] = seen ? t->care[behaviour] : -1;
}

/* Ticks first to last - 1 of n plays; `block` (STATE_ROWS, n), `weights` (n, 2, 11, 10). */
void play_columns(whole *block, whole n, const tables *t, const int32_t *weights, whole first, whole last) {
    whole c[CARD], w[SEEN];
    memset(c, 0, sizeof c);
    for (whole e = 0; e < n; e++) {
        const int32_t *brains = weights + e * 2 * KINDS * PULLS;
        for (int i = 0; i < STATE_ROWS; i++) c[i] = block[i * n + e];
        for (whole now = first; now < last; now++) {
            if (now % BLOCK == 0) begin_block(c, t, now);
            if (now % THINK == 0) {
                perceive(c, t, w);
                whole behaviour[2];
                for (int me = 0; me < 2; me++) behaviour[me] = choose(brains + me * KINDS * PULLS, w, me);
                for (int me = 0; me < 2; me++) give_orders(c, t, w, me, behaviour[me]);
            }
            tick(c, t, now);
        }
        for (int i = 0; i < STATE_ROWS; i++) block[i * n + e] = c[i];
    }
}
