"""The rules of the duel: every number a game designer might change, in whole units so that no step ever rounds.

Lengths are counted in 2⁻¹⁷ of a cell, angles in 256ths of a turn, time in ticks of 1/8 s. A speed is a whole multiple
of 1/32 cell a tick; times a heading table in 2⁻¹² it gives a whole number of 2⁻¹⁷ cells.
"""

RULES = 1  # their number, which goes with every score: under another, scores are scores of another game

TICKS_PER_S = 8
BLOCK = 8  # ticks: chance is drawn, and duels begin, at multiples of this
THINK = 2  # ticks from one decision of a brain to the next

CELLS = 16  # a map is CELLS x CELLS
SHIFT = 17
CELL = 1 << SHIFT  # units a cell
FINE_SHIFT = 15  # walls are tested on quarter cells
LOOK_SHIFT = 14  # bearings and distances are read on eighths of a cell

TURN = 256  # headings a full turn
FORWARD = 6  # 1/32 cell a tick: 1.5 cells a second
REVERSE = -4  # of a tank that backs away; one that steps aside may go backwards as fast as forwards
HULL_TURN = 6  # headings a tick: 67 degrees a second
GUN_TURN = 4  # 32 headings a second: a slow turret makes position count
DRIVE_ANGLE = 40  # headings: further off than this a tank turns on the spot
TANK_GAP = 3 * CELL // 4  # tanks do not come nearer to each other than this, on either axis

SHELL_SPEED = 40  # 10 cells a second
SHELL_RADIUS = 6 * 4096 // 16  # 2⁻¹² cells: a shell hits within this of a tank's middle
RELOAD = 22  # ticks, and by chance up to RELOAD_MORE others: 2.75 to 3.6 s, so that two guns do not keep time
RELOAD_MORE = 7
HEALTH = 128
FRONT, SIDE, REAR = 32, 43, 64  # damage by the face that is hit: four, three, two hits to win
SPREAD_STILL = 2  # headings that a shell strays by at most, gun tank at rest
SPREAD_MOVING = 14
LEAD = 19  # 256ths of a tick an eighth of a cell: aim leads by three quarters of a shell's flight

PACK_FIRST, PACK_AGAIN, PACK_HEALS = 80, 160, 48  # ticks, ticks, health
POWER_FIRST, POWER_AGAIN, POWER_LASTS = 48, 160, 80  # ticks; a powered shell does half as much again
DUEL_LIMIT = 480  # ticks: a duel nobody won in 60 s is a draw
