/** Collections of `routes`, each a map from key to record. */
export const ROUTE_COLLECTIONS = ['hosts', 'backends', 'certificates'] as const;
